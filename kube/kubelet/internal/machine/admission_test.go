package machine

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/allocation/admission"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/wingtest"
)

// adm-5: labels and taints are those of the latest object, which a scheduler may have seen before.
func TestTheNodeIsReadAgainBeforeARejectionForItsLabels(t *testing.T) {
	node := func(version string, labels map[string]string, taints ...v1.Taint) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version, Labels: labels}, Spec: v1.NodeSpec{Taints: taints}}
	}
	evicting := v1.Taint{Key: "down", Effect: v1.TaintEffectNoExecute}
	rack := map[string]string{"rack": "7"}
	one := []v1.Container{{Name: "c"}}
	selecting := &v1.Pod{Spec: v1.PodSpec{Containers: one, NodeSelector: rack}}
	license := func(amount string) *v1.Pod {
		return &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{"example.com/license": resource.MustParse(amount), "example.com/gpu": resource.MustParse("9")},
		}}}}}
	}
	with := func(n *v1.Node, licenses string) *v1.Node {
		n.Status.Allocatable = v1.ResourceList{"example.com/license": resource.MustParse(licenses), "example.com/gpu": resource.MustParse("1"), v1.ResourcePods: resource.MustParse("0")}
		return n
	}
	plugged := func(name v1.ResourceName) bool { return name == "example.com/gpu" }
	room := v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}
	plain := &v1.Pod{Spec: v1.PodSpec{Containers: one}}
	for name, tc := range map[string]struct {
		known, now *v1.Node
		fails      error
		pod        *v1.Pod
		want       string // the reason of the rejection; empty: it is admitted
		reads      int
	}{
		"admitted":                               {node("1", rack), node("2", nil), nil, selecting, "", 0},
		"a new label":                            {node("1", nil), node("2", rack), nil, selecting, "", 1},
		"nothing known yet":                      {nil, node("2", rack), nil, selecting, "", 1},
		"the same object":                        {node("1", nil), node("1", rack), nil, selecting, "NodeAffinity", 1},
		"still without":                          {node("1", nil), node("2", nil), nil, selecting, "NodeAffinity", 1},
		"no answer":                              {node("1", nil), nil, errors.New("down"), selecting, "NodeAffinity", 1},
		"a taint that is gone":                   {node("1", nil, evicting), node("2", nil), nil, plain, "", 1},
		"a taint that is there":                  {node("1", nil, evicting), node("2", nil, evicting), nil, plain, "TaintToleration", 1},
		"another reason":                         {node("1", nil), node("2", nil), nil, &v1.Pod{Spec: v1.PodSpec{Containers: one, OS: &v1.PodOS{Name: "plan9"}}}, "PodOSNotSupported", 0},
		"a resource of the object that suffices": {with(node("1", nil), "2"), nil, nil, license("2"), "", 0},
		"one that does not":                      {with(node("1", nil), "2"), with(node("2", nil), "2"), nil, license("3"), "OutOfexample.com/license", 1},
		"one that now does":                      {with(node("1", nil), "2"), with(node("2", nil), "3"), nil, license("3"), "", 1},
		"one that the object has not":            {node("1", nil), nil, nil, license("3"), "", 0},
		"the label is gone, too":                 {node("1", nil), node("2", map[string]string{"rack": "8"}), nil, selecting, "NodeAffinity", 1},
	} {
		t.Run(name, func(t *testing.T) {
			object := stores.NewNodeObject(wingtest.Base(t, wingtest.Standalone(t, "")))
			if tc.known != nil {
				object.Observed(tc.known)
			}
			reads := 0
			node := nodeAdmission{
				Machine: on(room), Object: object,
				Read: func(ctx context.Context) (*v1.Node, error) {
					_, bounded := ctx.Deadline()
					assert.True(t, bounded)
					reads++
					return tc.now, tc.fails
				},
				Leaving: func(types.UID) bool { return false }, Devices: plugged,
			}
			manager, err := allocation.Open(allocation.Config{Admit: node.Admit, Refresh: node.Refresh})
			require.NoError(t, err)
			rejection := manager.Admit(t.Context(), tc.pod)
			assert.Equal(t, tc.reads, reads)
			if tc.want == "" {
				assert.Nil(t, rejection)
				return
			}
			require.NotNil(t, rejection)
			assert.Equal(t, tc.want, rejection.Reason)
		})
	}
	standaloneNode := nodeAdmission{Machine: on(room), Leaving: func(types.UID) bool { return false }, Devices: plugged}
	rejection := standaloneNode.Admit(t.Context(), allocation.Request{Pod: selecting})
	assert.Equal(t, "NodeAffinity", rejection.Reason)
	assert.False(t, standaloneNode.Refresh(t.Context(), rejection))
}

// A Node object that was read for one pod decides about the next ones until a newer one is known.
func TestANodeThatWasReadAgainIsUsedUntilANewerOneIsKnown(t *testing.T) {
	node := func(version, rack string) *v1.Node {
		return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", ResourceVersion: version, Labels: map[string]string{"rack": rack}}}
	}
	object, reads := stores.NewNodeObject(wingtest.Base(t, wingtest.Standalone(t, ""))), 0
	object.Observed(node("1", "6"))
	n := nodeAdmission{
		Machine: on(v1.ResourceList{v1.ResourcePods: resource.MustParse("10")}), Object: object,
		Read:    func(context.Context) (*v1.Node, error) { reads++; return node("2", "7"), nil },
		Leaving: func(types.UID) bool { return false },
	}
	manager, err := allocation.Open(allocation.Config{Admit: n.Admit, Refresh: n.Refresh})
	require.NoError(t, err)
	selecting := func(uid types.UID, rack string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}, NodeSelector: map[string]string{"rack": rack}}}
	}
	assert.Nil(t, manager.Admit(t.Context(), selecting("a", "7")))
	assert.Nil(t, manager.Admit(t.Context(), selecting("b", "7")))
	assert.Equal(t, 1, reads)
	object.Observed(node("3", "8"))
	assert.Nil(t, manager.Admit(t.Context(), selecting("c", "8")))
	assert.Equal(t, 1, reads)
}

// on returns a machine with these resources.
func on(allocatable v1.ResourceList) func() admission.Node {
	return func() admission.Node { return admission.Node{Name: "n", OS: "linux", Allocatable: allocatable} }
}
