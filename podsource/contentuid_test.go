package podsource_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/podsource"
)

func TestAContentUIDDependsOnTheSpec(t *testing.T) {
	of := func(p *v1.Pod) types.UID {
		uid, err := podsource.ContentUID(p)
		require.NoError(t, err)
		return uid
	}
	first := of(pod("a", image("1")))
	assert.Regexp(t, "^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$", first)
	assert.Equal(t, first, of(pod("a", image("1"), uid("any"), func(p *v1.Pod) {
		p.Labels, p.Annotations, p.Status.Phase = map[string]string{"a": "b"}, map[string]string{"a": "b"}, v1.PodRunning
	})))
	for _, other := range []*v1.Pod{pod("a", image("2")), pod("b", image("1")), pod("a", image("1"), func(p *v1.Pod) { p.Namespace = "other" })} {
		assert.NotEqual(t, first, of(other))
	}
}
