package certs_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/kube/certs"
)

func TestMLDSAIsRefused(t *testing.T) {
	cfg := configIn(t, newSigner(t))
	for _, cfg.KeyAlgorithm = range []certs.KeyAlgorithm{certs.MLDSA44, certs.MLDSA65, certs.MLDSA87} {
		assert.EqualError(t, certs.Bootstrap(t.Context(), cfg),
			"certs: Config.KeyAlgorithm: key algorithm "+string(cfg.KeyAlgorithm)+" requires Go 1.27 and the libraries of Kubernetes 1.38")
	}
}
