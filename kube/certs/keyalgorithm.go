package certs

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
)

// A KeyAlgorithm is the algorithm and size of the keys that are generated, with its name in a
// KubeletConfiguration. Empty: ECDSAP256.
type KeyAlgorithm string

// The algorithms of a KubeletConfiguration. The signer of a cluster may refuse some.
const (
	ECDSAP256 KeyAlgorithm = "ECDSA-P256"
	ECDSAP384 KeyAlgorithm = "ECDSA-P384"
	RSA2048   KeyAlgorithm = "RSA-2048"
	RSA3072   KeyAlgorithm = "RSA-3072"
	RSA4096   KeyAlgorithm = "RSA-4096"

	// Those of ML-DSA require Go 1.27 and the libraries of Kubernetes 1.38.
	MLDSA44 KeyAlgorithm = "ML-DSA-44"
	MLDSA65 KeyAlgorithm = "ML-DSA-65"
	MLDSA87 KeyAlgorithm = "ML-DSA-87"
)

// generator returns the function that generates a key, or an error if there is none.
func (a KeyAlgorithm) generator() (func() (crypto.Signer, error), error) {
	switch a {
	case "", ECDSAP256:
		return ecdsaKeys(elliptic.P256()), nil
	case ECDSAP384:
		return ecdsaKeys(elliptic.P384()), nil
	case RSA2048:
		return rsaKeys(2048), nil
	case RSA3072:
		return rsaKeys(3072), nil
	case RSA4096:
		return rsaKeys(4096), nil
	case MLDSA44, MLDSA65, MLDSA87:
		return mldsaKeys(a)
	}
	return nil, fmt.Errorf("unknown key algorithm %q", a)
}

func ecdsaKeys(curve elliptic.Curve) func() (crypto.Signer, error) {
	return func() (crypto.Signer, error) { return ecdsa.GenerateKey(curve, rand.Reader) }
}

func rsaKeys(bits int) func() (crypto.Signer, error) {
	return func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, bits) }
}

// accepts reports whether a stored key is used for a request. Without an algorithm any is.
func (a KeyAlgorithm) accepts(key crypto.Signer) bool {
	return a == "" || algorithmOf(key.Public()) == a
}

// algorithmOf returns the algorithm of a key; empty: none of the above.
func algorithmOf(public crypto.PublicKey) KeyAlgorithm {
	switch k := public.(type) {
	case *ecdsa.PublicKey:
		return KeyAlgorithm("ECDSA-P" + fmt.Sprint(k.Params().BitSize))
	case *rsa.PublicKey:
		return KeyAlgorithm("RSA-" + fmt.Sprint(k.N.BitLen()))
	}
	return mldsaOf(public)
}
