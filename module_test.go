package kubeparts_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheModuleRequiresNoClient(t *testing.T) {
	mod, err := os.ReadFile("go.mod")
	require.NoError(t, err)
	assert.NotContains(t, string(mod), "k8s.io/client-go", "it lives in kube/, nowhere else")
	assert.NotContains(t, string(mod), "k8s.io/kubernetes ")
}
