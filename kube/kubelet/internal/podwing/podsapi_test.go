package podwing

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

func TestThePodsAPICanBeDisabled(t *testing.T) {
	b := wingtest.Base(t, wingtest.Standalone(t, "featureGates: {PodsAPI: false}\n"))
	components, err := newPodsAPI(b, nil)
	require.NoError(t, err)
	assert.Empty(t, components)
	assert.Nil(t, notifyPods(b, nil))
}
