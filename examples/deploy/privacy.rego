# An attestation of pyaccount against limits, in Rego, for OPA and for `cosign verify-attestation --policy`.
#
# The input is an in-toto Statement. What verified its signature must also have compared its subjects with what is deployed. Nothing
# here recomputes anything, or finds a certificate that contradicts itself: `pyaccount check` does that.
#
#   opa eval --data privacy.rego --input statement.json data.signature.deny
package signature

import rego.v1

# Your limits.
max_epsilon := 8

max_delta := 0.00001

adjacencies := {"add-remove", "zero-out"}

units := {"record", "user"}

# "confidence" is not here: it may be false with a failure_probability.
guarantees := {"deterministic", "verified"}

default allow := false

# What is absent is undefined, and what is undefined is not allowed.
allow if {
	statement
	certificate
	holds
	epsilon_within
	delta_within
	adjacency_accepted
	unit_accepted
	guarantee_accepted
}

# For people: which of them failed.
deny contains "not an in-toto Statement with a certificate of pyaccount" if not statement

deny contains "the predicate is not a certificate of format version 1" if not certificate

deny contains "the claim of the certificate does not hold" if not holds

deny contains sprintf("the upper bound on epsilon is absent, or larger than %v", [max_epsilon]) if not epsilon_within

deny contains sprintf("the upper bound on delta is absent, or larger than %v", [max_delta]) if not delta_within

deny contains "the adjacency is not accepted" if not adjacency_accepted

deny contains "the unit is not accepted" if not unit_accepted

deny contains "the kind of guarantee is not accepted" if not guarantee_accepted

statement if {
	input._type == "https://in-toto.io/Statement/v1"
	input.predicateType == "urn:pyaccount:certificate:v1"
	count(input.subject) > 0
}

certificate if {
	input.predicate.pyaccount == 1
	input.predicate.kind == "certificate"
}

holds if input.predicate.holds == true

# Values of other types compare too: null and booleans are less than every number.
epsilon_within if {
	is_number(input.predicate.guarantee.epsilon)
	input.predicate.guarantee.epsilon >= 0
	input.predicate.guarantee.epsilon <= max_epsilon
}

delta_within if {
	is_number(input.predicate.guarantee.delta)
	input.predicate.guarantee.delta >= 0
	input.predicate.guarantee.delta <= max_delta
}

adjacency_accepted if input.predicate.privacy.adjacency in adjacencies

unit_accepted if input.predicate.privacy.unit in units

guarantee_accepted if input.predicate.guarantee.kind in guarantees
