package runonce_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/kubeparts/kubeparts/internal/runonce"
)

func TestOnlyTheFirstCallEnters(t *testing.T) {
	var g runonce.Guard
	assert.NoError(t, g.Enter("pkg: Type"))
	assert.EqualError(t, g.Enter("pkg: Type"), "pkg: Type.Run was called before")
}

func TestConcurrentCallsEnterOnce(t *testing.T) {
	var g runonce.Guard
	errs := make(chan error)
	for range 100 {
		go func() { errs <- g.Enter("pkg: Type") }()
	}
	entered := 0
	for range 100 {
		if <-errs == nil {
			entered++
		}
	}
	assert.Equal(t, 1, entered)
}
