package certs

import (
	"crypto"
	"fmt"
)

// mldsaKeys returns an error: the file of hack/next takes the place of this one.
func mldsaKeys(a KeyAlgorithm) (func() (crypto.Signer, error), error) {
	return nil, fmt.Errorf("key algorithm %s requires Go 1.27 and the libraries of Kubernetes 1.38", a)
}

func mldsaOf(crypto.PublicKey) KeyAlgorithm { return "" }
