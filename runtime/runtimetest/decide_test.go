package runtimetest_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/fake"
	"github.com/kubeparts/kubeparts/runtime/runtimetest"
)

func TestBehaviorMayDependOnThePod(t *testing.T) {
	rt := &runtimetest.Runtime{
		Decide: func(pod *v1.Pod, _ *v1.Container) *fake.Behavior {
			if pod.Name == "bad" {
				return &fake.Behavior{Fail: &fake.Failure{Reason: "ErrImagePull"}}
			}
			return nil
		},
		Address: func() string { return "192.0.2.1" },
	}
	rt.Behave("main", fake.Behavior{Exit: &fake.Exit{Code: 7}})
	sync := func(name string) error {
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)},
			Spec:       v1.PodSpec{RestartPolicy: v1.RestartPolicyNever, Containers: []v1.Container{{Name: "main"}}},
		}})
		return err
	}
	assert.Error(t, sync("bad"))
	require.NoError(t, sync("good"))
	s, err := rt.PodStatus(t.Context(), "good")
	require.NoError(t, err)
	assert.Equal(t, []string{"192.0.2.1"}, s.IPs)
	assert.Len(t, s.Containers, 1)
	s, err = rt.PodStatus(t.Context(), "bad")
	require.NoError(t, err)
	assert.Empty(t, s.Containers, "the behavior of Decide takes precedence")
}
