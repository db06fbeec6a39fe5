package podworker

import (
	"testing"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/runtime"
)

func namedPod(uid, name string, annotations map[string]string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: types.UID(uid), Name: name, Namespace: "default", Annotations: annotations}}
}

func staticPod(uid, name string) *v1.Pod {
	return namedPod(uid, name, map[string]string{runtime.ConfigSourceAnnotation: "file", runtime.ConfigHashAnnotation: "hash-" + uid})
}

func mirrorPod(uid, name, hash string) *v1.Pod {
	return namedPod(uid, name, map[string]string{runtime.ConfigSourceAnnotation: "api", v1.MirrorPodAnnotationKey: hash})
}

func TestPodSetKeepsMirrorsApart(t *testing.T) {
	s := newPodSet()
	web, mirror, plain := staticPod("s1", "web"), mirrorPod("m1", "web", "hash-s1"), namedPod("p1", "db", nil)
	lost := mirrorPod("m2", "gone", "x")
	for _, pod := range []*v1.Pod{web, mirror, plain, lost} {
		s.set(pod)
	}
	assert.Same(t, web, s.named("web_default"), "ps-1: never the mirror")
	assert.Nil(t, s.pods["m1"], "ps-1")
	assert.Same(t, mirror, s.mirrorOf(web), "ps-2, ps-5")
	assert.Nil(t, s.mirrorOf(plain), "ps-5: only static pods have one")
	assert.Equal(t, types.UID("s1"), s.translate("m1"), "ps-3")
	assert.Equal(t, types.UID("p1"), s.translate("p1"), "ps-3")
	assert.Equal(t, types.UID("m2"), s.translate("m2"), "ps-3: there is nothing to translate it to")
	assert.Empty(t, s.translate(""), "ps-3")
	assert.Equal(t, map[types.UID]types.UID{"s1": "m1"}, s.translations(), "ps-4")
	assert.Equal(t, []*v1.Pod{lost}, s.orphanMirrors(), "ps-6")

	s.remove("m1")
	assert.Equal(t, map[types.UID]types.UID{"s1": ""}, s.translations(), "ps-4: without a mirror")
	s.remove("m1")
	s.set(mirror)
	s.remove("s1")
	assert.Equal(t, []*v1.Pod{mirror, lost}, s.orphanMirrors(), "ps-6")
}

func TestTwoPodsOfOneNameAreBothFound(t *testing.T) { // ps-7, lq-27
	s := newPodSet()
	older, newer := staticPod("s1", "web"), staticPod("s2", "web")
	s.set(older)
	s.set(newer)
	assert.Same(t, newer, s.named("web_default"), "the last one stored")
	s.remove("s2")
	assert.Same(t, older, s.named("web_default"), "what is left is still found")
	s.remove("s1")
	assert.Nil(t, s.named("web_default"))
	assert.Empty(t, s.podNames, "nothing is left of a name")
	assert.Empty(t, s.pods)
}

func TestAPodThatBecomesAMirrorChangesSides(t *testing.T) {
	s := newPodSet()
	s.set(namedPod("x", "web", nil))
	s.set(mirrorPod("x", "web", "h"))
	assert.Empty(t, s.pods)
	assert.Len(t, s.mirrors, 1)
}
