package volume_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	mount "k8s.io/mount-utils"

	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/volumetest"
)

// countingMounter counts how often the mounts of the machine are listed.
type countingMounter struct {
	mount.Interface
	lists atomic.Int64
}

func (m *countingMounter) List() ([]mount.MountPoint, error) {
	m.lists.Add(1)
	return m.Interface.List()
}

// Mount does not run systemd: mount-utils detects it without a lock.
func (m *countingMounter) Mount(source, target, fstype string, options []string) error {
	return m.MountSensitiveWithoutSystemd(source, target, fstype, options, nil)
}

// Draining a node with so many other mounts: 20 pods with a volume on disk, one in
// memory and a sub-path each are removed at once. Run it in a separate mount
// namespace.
func BenchmarkDrain(b *testing.B) {
	for _, mounts := range []int{0, 1000} {
		b.Run(fmt.Sprintf("mounts=%d", mounts), func(b *testing.B) {
			m := &countingMounter{Interface: needMounts(b)}
			others := b.TempDir()
			for i := range mounts {
				dir := filepath.Join(others, fmt.Sprint(i))
				require.NoError(b, os.Mkdir(dir, 0o755))
				require.NoError(b, unix.Mount(others, dir, "", unix.MS_BIND, ""))
				b.Cleanup(func() { require.NoError(b, unix.Unmount(dir, unix.MNT_DETACH)) })
			}
			memory := &volumetest.Plugin{Kind: "example.com/memory", Mounter: m, Supports: func(s *volume.Spec) bool { return s.Name() == "memory" }}
			disk := &removing{Plugin: &volumetest.Plugin{Kind: "example.com/disk", Supports: func(s *volume.Spec) bool { return s.Name() == "disk" }}, mounter: m}
			n := start(b, nil, func(c *volume.Config) { c.Mounter, c.Plugins = m, []volume.Plugin{memory, disk} })
			var binds time.Duration
			for b.Loop() {
				b.StopTimer()
				var pods []*v1.Pod
				for i := range 20 {
					p := pod(fmt.Sprint("pod-", i), "disk", "memory")
					got, err := n.Mount(b.Context(), p)
					require.NoError(b, err)
					begun := time.Now()
					_, err = n.SubPath(b.Context(), runtime.SubPath{PodUID: p.UID, Volume: "disk", VolumePath: got["disk"].Path, Container: "c", Path: "part"})
					require.NoError(b, err)
					binds += time.Since(begun)
					pods = append(pods, p)
				}
				b.StartTimer()
				m.lists.Store(0)
				var wg sync.WaitGroup
				for _, p := range pods {
					wg.Go(func() {
						if err := n.Unmount(b.Context(), p); err != nil {
							b.Error(err)
						}
					})
				}
				wg.Wait()
			}
			b.ReportMetric(float64(m.lists.Load()), "lists/op")
			b.ReportMetric(float64(binds.Microseconds())/float64(20*b.N), "µs/subpath")
		})
	}
}

// removing is a plugin whose volumes are removed as those of emptyDir are.
type removing struct {
	*volumetest.Plugin
	mounter volume.Mounter
}

func (r *removing) TearDown(ctx context.Context, at volume.Place) error {
	return volume.RemoveTree(ctx, r.mounter, at.Dir())
}
