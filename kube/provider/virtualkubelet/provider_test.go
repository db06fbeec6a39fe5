package virtualkubelet_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/provider"
	"github.com/kubeparts/kubeparts/kube/provider/virtualkubelet"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func TestInvalidConfigurationsAreErrors(t *testing.T) {
	_, err := virtualkubelet.New(provider.Config{NodeName: "virtual"})
	assert.EqualError(t, err, "provider: Config.Runtime is nil")
	_, err = virtualkubelet.New(provider.Config{Runtime: new(runtimetest.Runtime)})
	assert.EqualError(t, err, "virtualkubelet: Config.NodeName is empty")
	p, err := virtualkubelet.New(provider.Config{Runtime: new(runtimetest.Runtime), NodeName: "virtual"})
	require.NoError(t, err)
	_, err = p.NewNode(nil, nil)
	assert.ErrorContains(t, err, "auth is nil")
}
