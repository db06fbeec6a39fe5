package machine

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWarningOfANodeWithoutCgroups(t *testing.T) { // ns-11
	assert.Equal(t, "pods have no cgroups; limits are not enforced", PodCgroups{}.Warning())
}

func TestNoImagesAreReportedIfTheMaximumIs0(t *testing.T) {
	list, err := (*NodeImages)(nil).ForNode(PodRuntime{}, 0)(t.Context())
	require.NoError(t, err)
	assert.Empty(t, list)
}
