package agent

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/prober"
	"github.com/kubeparts/kubeparts/runtime"
)

func TestGarbageEndsTheProbesOfRemovedPods(t *testing.T) {
	var ended []types.UID
	probes, err := prober.New(prober.Config{Hooks: prober.Hooks{
		Removed: func(pod *v1.Pod, _ string, _ prober.Kind) { ended = append(ended, pod.UID) },
	}})
	require.NoError(t, err)
	for _, uid := range []types.UID{"desired", "removed"} {
		probes.Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: v1.PodSpec{Containers: []v1.Container{{
			Name: "c", ReadinessProbe: &v1.Probe{ProbeHandler: v1.ProbeHandler{Exec: &v1.ExecAction{}}},
		}}}})
	}
	g := newSweeper(Config{}, probes)
	require.NoError(t, g.CollectGarbage(t.Context(), runtime.GCPolicy{}))
	assert.Empty(t, ended, "which pods are removed is not known")
	require.NoError(t, g.CollectGarbage(t.Context(), runtime.GCPolicy{Keep: func(uid types.UID) bool { return uid != "removed" }}))
	assert.Equal(t, []types.UID{"removed"}, ended)
}
