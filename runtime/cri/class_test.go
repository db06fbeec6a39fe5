package cri_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri"
)

func TestAClassIsResolvedOrThePodIsNotRun(t *testing.T) { // rt-20
	classes := func(name string) (string, error) {
		if name != "sandboxed" {
			return "", fmt.Errorf("runtimeclass.node.k8s.io %q not found", name)
		}
		return "kata", nil
	}
	for _, tc := range []struct {
		name, class string
		resolve     func(string) (string, error)
		want        string
	}{
		{"rt-20 resolved", "sandboxed", classes, ""},
		{"rt-20 none named", "", nil, ""},
		{"rt-20 unknown", "other", classes, `runtimeclass.node.k8s.io "other" not found`},
		{"rt-20 no source", "sandboxed", nil, `failed to get RuntimeClass "sandboxed": Providers.RuntimeClass is nil`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFake()
			f.has("img:1")
			rt, _ := f.engine(t, cri.Config{Providers: cri.Providers{RuntimeClass: tc.resolve}})
			pod := podOf(container("web"))
			pod.Spec.RuntimeClassName = &tc.class
			res, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: pod})
			if tc.want == "" {
				require.NoError(t, err)
				return
			}
			require.Error(t, err)
			assert.ErrorContains(t, res.Actions[0].Err, tc.want)
			assert.Empty(t, f.sandboxes())
		})
	}
}

func TestImagesAreKeptApartByHandler(t *testing.T) { // rt-20
	for _, by := range []bool{false, true} {
		f := newFake()
		rt, _ := f.engine(t, cri.Config{Pulls: cri.PullConfig{ByRuntimeHandler: by}, Providers: cri.Providers{RuntimeClass: func(string) (string, error) { return "kata", nil }}})
		pod := podOf(container("web"))
		pod.Spec.RuntimeClassName = new("sandboxed")
		syncs(t, rt, pod)
		want := ""
		if by {
			want = "kata"
		}
		assert.Equal(t, []string{want}, f.handlers)
	}
}
