package cri_test

import (
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func TestAPodWithPathsAsNamesIsRejected(t *testing.T) { // rt-17, rt-85, rt-124, rt-134
	for name, change := range map[string]func(*v1.Pod){
		"UID with ..":                        func(p *v1.Pod) { p.UID = ".." },
		"UID that is a path":                 func(p *v1.Pod) { p.UID = "a/../../b" },
		"UID that is absolute":               func(p *v1.Pod) { p.UID = "/etc" },
		"UID that resolves to another pod's": func(p *v1.Pod) { p.UID = "a_b" },
		"UID with a NUL":                     func(p *v1.Pod) { p.UID = "a\x00b" },
		"name":                               func(p *v1.Pod) { p.Name = "../../x" },
		"no namespace":                       func(p *v1.Pod) { p.Namespace = "" },
		"no name":                            func(p *v1.Pod) { p.Name = "" },
		"namespace":                          func(p *v1.Pod) { p.Namespace = "../x" },
		"container":                          func(p *v1.Pod) { p.Spec.Containers[0].Name = "../../../x" },
		"init container":                     func(p *v1.Pod) { p.Spec.InitContainers = []v1.Container{container("..")} },
		"ephemeral container": func(p *v1.Pod) {
			p.Spec.EphemeralContainers = []v1.EphemeralContainer{{EphemeralContainerCommon: v1.EphemeralContainerCommon{Name: `a\b`}}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			dir := t.TempDir()
			rt, err := cri.New(cri.Config{
				Name: "fake", Runtime: f, Images: f, Dirs: cri.Dirs{Root: dir + "/a/b/root", PodLogs: dir + "/a/b/logs"},
			})
			require.NoError(t, err)
			pod := podOf(container("web"))
			change(pod)
			_, err = rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			require.ErrorContains(t, err, "is not valid in a path")
			assert.Empty(t, f.did(), "the runtime is not called")
			made, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, made, "no directory is created")
		})
	}
}
