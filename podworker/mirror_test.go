package podworker

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestAMirrorIsMarkedAndOwnedByTheNode(t *testing.T) { // mir-1
	pod := staticPod("s1", "web")
	mirror, err := MirrorPod(pod, metav1.OwnerReference{Name: "kitchen", UID: "node-uid"})
	require.NoError(t, err)
	assert.Equal(t, "hash-s1", mirror.Annotations[v1.MirrorPodAnnotationKey])
	assert.Equal(t, "hash-s1", mirror.Annotations[runtime.ConfigHashAnnotation])
	assert.Equal(t, []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "kitchen", UID: "node-uid", Controller: new(true)}}, mirror.OwnerReferences)
	assert.NotContains(t, pod.Annotations, v1.MirrorPodAnnotationKey, "the static pod is not touched")
	assert.True(t, mirrorMatches(pod, mirror), "mir-4")

	_, err = MirrorPod(pod, metav1.OwnerReference{Name: "kitchen"})
	require.EqualError(t, err, "podworker: the node's object has no UID")
	_, err = MirrorPod(namedPod("p", "db", nil), metav1.OwnerReference{UID: "node-uid"})
	require.EqualError(t, err, "podworker: pod default/db is not static: no annotation kubernetes.io/config.hash")
}

func TestMirrorPlan(t *testing.T) { // sl-32, mir-4
	pod := staticPod("s1", "web")
	leaving := mirrorPod("m1", "web", "hash-s1")
	leaving.DeletionTimestamp = new(metav1.Unix(1, 0))
	otherSpec := mirrorPod("m1", "web", "hash-s1")
	otherSpec.Spec.NodeName = "elsewhere"
	for name, tc := range map[string]struct {
		mirror *v1.Pod
		want   mirrorPlan
	}{
		"there is none":                {nil, mirrorPlan{create: true}},
		"it is right":                  {mirrorPod("m1", "web", "hash-s1"), mirrorPlan{}},
		"mir-5 its spec is ignored":    {otherSpec, mirrorPlan{}},
		"it is of an earlier manifest": {mirrorPod("m1", "web", "old"), mirrorPlan{remove: true, create: true}},
		"it is being deleted":          {leaving, mirrorPlan{remove: true, create: true}},
		"mir-4 it has another name":    {mirrorPod("m1", "db", "hash-s1"), mirrorPlan{remove: true, create: true}},
	} {
		t.Run(name, func(t *testing.T) { assert.Equal(t, tc.want, planMirror(pod, tc.mirror)) })
	}
}

// An apiServer stores mirror pods, and rejects them if set to.
type apiServer struct {
	asked []string
	fail  error
}

func (a *apiServer) Node() (metav1.OwnerReference, bool) {
	return metav1.OwnerReference{Name: "kitchen", UID: "node-uid"}, true
}

func (a *apiServer) CreateMirror(_ context.Context, pod *v1.Pod) error {
	a.asked = append(a.asked, "create "+pod.Annotations[v1.MirrorPodAnnotationKey])
	return a.fail
}

func (a *apiServer) DeleteMirror(_ context.Context, pod *v1.Pod) error {
	a.asked = append(a.asked, "delete "+string(pod.UID))
	return a.fail
}

func TestSyncMirror(t *testing.T) { // sl-32, mir-2
	pod := staticPod("s1", "web")
	for name, tc := range map[string]struct {
		mirror *v1.Pod
		fail   error
		want   []string
		err    string
	}{
		"an outdated one is replaced":                {mirrorPod("m1", "web", "old"), nil, []string{"delete m1", "create hash-s1"}, ""},
		"one that cannot be deleted is not replaced": {mirrorPod("m1", "web", "old"), errors.New("forbidden"), []string{"delete m1"}, "delete: forbidden"},
		"a missing one is created":                   {nil, errors.New("forbidden"), []string{"create hash-s1"}, "create: forbidden"},
		"one that is up to date is left":             {mirrorPod("m1", "web", "hash-s1"), nil, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			api := &apiServer{fail: tc.fail}
			err := SyncMirror(t.Context(), api, pod, tc.mirror)
			if tc.err == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.err)
			}
			assert.Equal(t, tc.want, api.asked)
		})
	}
}
