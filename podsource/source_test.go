package podsource_test

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/podsource"
)

// setPods returns a function that sets the pods with the names.
func setPods(m *podsource.Memory) func(names ...string) {
	return func(names ...string) {
		var pods []*v1.Pod
		for _, name := range names {
			pods = append(pods, pod(name))
		}
		m.Set(pods...)
	}
}

// Each source passes the complete set, also after a restart, and each change, and returns when
// its context is done.
func TestSourcesKeepTheContract(t *testing.T) { // src-1, src-29, lq-26
	for name, setUp := range map[string]func(t *testing.T) (source podsource.PodSource, want func(names ...string)){
		"Memory": func(t *testing.T) (podsource.PodSource, func(...string)) {
			m := new(podsource.Memory)
			return m, setPods(m)
		},
		"Func": func(t *testing.T) (podsource.PodSource, func(...string)) {
			m := new(podsource.Memory)
			return podsource.Func(m.Run), setPods(m)
		},
		"File": func(t *testing.T) (podsource.PodSource, func(...string)) {
			dir := filepath.Join(t.TempDir(), "d")
			f, err := podsource.NewFile(podsource.FileConfig{Path: dir, NodeName: "n", Period: 5 * time.Millisecond, Settle: -1})
			require.NoError(t, err)
			return f, func(names ...string) {
				// The directory is replaced.
				next := t.TempDir()
				for _, name := range names {
					write(t, filepath.Join(next, name), manifest(name))
				}
				if err := os.Rename(dir, t.TempDir()+"/old"); err != nil {
					require.ErrorIs(t, err, os.ErrNotExist)
				}
				require.NoError(t, os.Rename(next, dir))
			}
		},
		"URL": func(t *testing.T) (podsource.PodSource, func(...string)) {
			s := new(site)
			u, err := podsource.NewURL(podsource.URLConfig{
				URL: "http://pods.example", NodeName: "n", Client: &http.Client{Transport: s}, Period: 5 * time.Millisecond,
			})
			require.NoError(t, err)
			return u, func(names ...string) { s.now(func(s *site) { s.body = podList(names...) }) }
		},
		"Checkpoint": func(t *testing.T) (podsource.PodSource, func(...string)) {
			m := new(podsource.Memory)
			c, _ := remembering(t, t.TempDir(), m)
			return c, setPods(m)
		},
	} {
		t.Run(name, func(t *testing.T) {
			source, want := setUp(t)
			want("a", "b")
			t.Run("first run", func(t *testing.T) {
				s := run(t, source)
				s.await(t, "a", "b")
				want("b", "c")
				s.await(t, "b", "c")
			})
			t.Run("second run", func(t *testing.T) {
				s := run(t, source)
				s.await(t, "b", "c")
				want()
				s.await(t)
			})
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			assert.NoError(t, source.Run(ctx, func([]*v1.Pod) { t.Error("set after the end") }))
		})
	}
}

func TestMemoryIsNotSyncedBeforeItIsSet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(podsource.Memory)
		s := run(t, m)
		synctest.Wait()
		assert.Zero(t, s.n)
		m.Set()
		synctest.Wait()
		assert.Equal(t, 1, s.n, "a set may be empty")
		assert.Empty(t, s.last)
	})
}

func TestMemoryAddsReplacesAndRemoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := new(podsource.Memory)
		s := run(t, m)
		p := pod("a")
		m.Add(p, pod("b"))
		p.Name = "changed by the caller"
		synctest.Wait()
		assert.Equal(t, []string{"a", "b"}, s.last)
		m.Add(pod("a2", uid("a")), nil, pod("c"))
		synctest.Wait()
		assert.Equal(t, []string{"a2", "b", "c"}, s.last)
		m.Remove("b", "unknown")
		synctest.Wait()
		assert.Equal(t, []string{"a2", "c"}, s.last)
		m.Set(pod("d"))
		m.Set(pod("e"))
		synctest.Wait()
		assert.Equal(t, []string{"e"}, s.last)
	})
}
