//go:build unix

package compare

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Every pod of the corpus has only fields that the API has, and a name of its own.
func TestTheCorpusIsValid(t *testing.T) {
	batches, err := corpus("", "")
	require.NoError(t, err)
	names := map[string]bool{}
	for _, b := range batches {
		for _, o := range b.pods() {
			var pod v1.Pod
			assert.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(o.Object, &pod, true), o.GetName())
			assert.False(t, names[pod.Name], "%s exists twice", pod.Name)
			names[pod.Name] = true
			for _, c := range append(pod.Spec.InitContainers, pod.Spec.Containers...) {
				assert.True(t, strings.Contains(c.Image, "test/"), "%s: no registry has %s", pod.Name, c.Image)
			}
		}
	}
	assert.GreaterOrEqual(t, len(names), 60)
}

func TestFocus(t *testing.T) {
	batches, err := corpus("^probes$", "")
	require.NoError(t, err)
	require.Len(t, batches, 1)
	assert.True(t, batches[0].static)
	_, err = corpus("no such file", "")
	assert.Error(t, err)
	_, err = corpus("(", "")
	assert.Error(t, err)
	_, err = parseObjects([]byte("kind: Pod\n"))
	assert.ErrorContains(t, err, "no kind or name")
}

func TestPodsAreSkippedByName(t *testing.T) {
	all, err := corpus("^resources$", "")
	require.NoError(t, err)
	some, err := corpus("^resources$", "^resources-tiny$")
	require.NoError(t, err)
	require.Len(t, some, 1)
	assert.Len(t, some[0].objects, len(all[0].objects)-1)
	for _, o := range some[0].objects {
		assert.NotEqual(t, "resources-tiny", o.GetName())
	}
	_, err = corpus("", "(")
	assert.ErrorContains(t, err, "--skip")
}
