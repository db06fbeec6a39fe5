package allocation_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/runtime"
)

// Whatever is in a record, whole or with a good checksum and odd content: the
// Manager opens, other pods are let in beside it, and its pod can be resized and
// released.
func FuzzRecord(f *testing.F) {
	f.Add([]byte(`{"uid":"u","namespace":"ns","name":"web","regular":["a"],"allocated":{"containers":{"a":{"requests":{"cpu":"1"}}}}}`), true)
	f.Add([]byte(`{"uid":"u","sidecars":["",""],"regular":["a","a"],"allocated":{"pod":{"limits":{"cpu":"-1e300"}}}}`), true)
	f.Add([]byte(`{"uid":"u","allocated":null,"podLevel":{"limits":{"":"0"}}}`), true)
	f.Add([]byte(`{`), false)
	f.Fuzz(func(t *testing.T, content []byte, checked bool) {
		dir := t.TempDir()
		path := filepath.Join(dir, "u.json")
		if !checked || checkpoint.Write(path, raw(content)) != nil {
			require.NoError(t, os.WriteFile(path, content, 0o600))
		}
		m, err := allocation.Open(allocation.Config{Dir: dir, Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
			for _, other := range req.Others {
				_ = other.DeepCopy()
			}
			return nil
		}})
		require.NoError(t, err)
		require.Nil(t, m.Admit(t.Context(), podOf("other", "a: cpu=1")))
		pod := podOf("u", "a: cpu=2/2", "pod: cpu=3/3")
		require.Nil(t, m.Admit(t.Context(), pod))
		got := m.Allocate(t.Context(), pod, runs("a: cpu=1/1"))
		require.Same(t, pod, got)
		allocation.PlanResize(allocation.Actuated(got, runs("a: cpu=1/1"), m.ActuatedPodResources("u")), got, runs("a"))
		m.Release("u")
		require.NoFileExists(t, path)
	})
}

// raw is content that is JSON already.
type raw []byte

func (r raw) MarshalJSON() ([]byte, error) { return r, nil }
