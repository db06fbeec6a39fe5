package csi_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/volume"
	"github.com/kubeparts/kubeparts/volume/csi"
	"github.com/kubeparts/kubeparts/volume/csi/csitest"
)

// A silentDriver does not answer one method for one volume, or for no volume, once it is told so.
type silentDriver struct {
	method, volume string
	silent         chan struct{} // closed: it does not answer
	called         chan struct{} // capacity 1
	release        chan struct{}
}

func (s *silentDriver) before(method, volume string) {
	if method != s.method || volume != s.volume {
		return
	}
	select {
	case <-s.silent:
	default:
		return
	}
	select {
	case s.called <- struct{}{}:
	default:
	}
	<-s.release
}

const otherDriver = "other.csi.example.com"

// A CSI driver that does not answer one of its methods delays no pod with another volume, and no pod of
// another driver if the method has no volume; and the manager stops soon.
func TestADriverThatDoesNotAnswerDelaysNoOtherPod(t *testing.T) {
	for _, method := range []string{
		"NodeStageVolume", "NodeUnstageVolume", "NodePublishVolume", "NodeUnpublishVolume", "NodeExpandVolume",
		"NodeGetVolumeStats", "NodeGetVolumeHealth", "NodeGetCapabilities",
	} {
		t.Run(method, func(t *testing.T) {
			s := &silentDriver{method: method, volume: "vol-a", silent: make(chan struct{}), called: make(chan struct{}, 1), release: make(chan struct{})}
			others := driverName
			if method == "NodeGetCapabilities" {
				s.volume, others = "", otherDriver
			}
			w := newWorld(t, csi.Config{})
			defer close(s.release)
			driver := serve(t, &csitest.Driver{Name: driverName, Dir: t.TempDir(), Mounter: w.mounter, Before: s.before})
			require.NoError(t, w.Register(t.Context(), driverName, driver.socket, []string{"1.0.0"}))
			other := serve(t, &csitest.Driver{Name: otherDriver, Dir: t.TempDir(), Mounter: w.mounter})
			require.NoError(t, w.Register(t.Context(), otherDriver, other.socket, []string{"1.0.0"}))

			claims := pvClaims{}
			for name, driver := range map[string]string{"a": driverName, "b": others} {
				claims.add(name, v1.PersistentVolumeFilesystem)
				claims[name].Spec.CSI.VolumeHandle, claims[name].Spec.CSI.Driver = "vol-"+name, driver
				claims[name].Spec.Capacity = v1.ResourceList{v1.ResourceStorage: resource.MustParse("1Gi")}
			}
			m, err := volume.New(volume.Config{
				RootDir: w.root, Plugins: []volume.Plugin{w.Plugin}, Mounter: w.mounter, StatsPeriod: 300 * time.Millisecond,
				HealthChanged: func(types.UID) {}, PersistentVolumes: volume.PersistentVolumeConfig{Claims: claims},
			})
			require.NoError(t, err)
			ctx, cancel := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			wg.Go(func() { assert.NoError(t, m.Run(ctx)) })

			stuck, fine := claims.podOf("a", "a"), claims.podOf("b", "b")
			mounting := method == "NodeStageVolume" || method == "NodePublishVolume" || method == "NodeGetCapabilities"
			if mounting {
				close(s.silent)
				go func() { _, _ = m.Mount(ctx, stuck) }()
			} else {
				_, err := m.Mount(t.Context(), stuck)
				require.NoError(t, err)
				close(s.silent)
			}
			switch method {
			case "NodeUnstageVolume", "NodeUnpublishVolume":
				go func() { _ = m.Unmount(ctx, stuck) }()
			case "NodeExpandVolume":
				larger := claims["a"].DeepCopy()
				larger.Spec.Capacity[v1.ResourceStorage] = resource.MustParse("2Gi")
				claims["a"] = larger
				_, _ = m.Mount(t.Context(), stuck)
			}
			select {
			case <-s.called:
			case <-time.After(time.Minute):
				t.Fatal("the driver was not called")
			}

			begun := time.Now()
			_, err = m.Mount(t.Context(), fine)
			require.NoError(t, err)
			assert.Eventually(t, func() bool {
				_, persistent := m.VolumeStats("b")
				return len(persistent) == 1
			}, 30*time.Second, time.Millisecond)
			require.NoError(t, m.Unmount(t.Context(), fine))
			cancel()
			wg.Wait()
			assert.Less(t, time.Since(begun), 30*time.Second)
		})
	}
}

// A driver that does not answer NodeGetInfo delays neither the limits of other drivers nor the end of Run.
func TestADriverThatDoesNotAnswerDelaysNoOtherLimit(t *testing.T) {
	s := &silentDriver{method: "NodeGetInfo", silent: make(chan struct{}), called: make(chan struct{}, 1), release: make(chan struct{})}
	l := &limits{api: &api{driver: &storagev1.CSIDriverSpec{
		AttachRequired: ptr(false), NodeAllocatableUpdatePeriodSeconds: ptr(int64(1)),
	}}}
	w := newWorld(t, csi.Config{Drivers: l})
	defer close(s.release)
	for _, name := range []string{"a", "b", "c"} { // whatever their order is
		name := name + "-" + driverName
		d := serve(t, &csitest.Driver{Name: name, Dir: t.TempDir(), Mounter: w.mounter, Before: s.before})
		require.NoError(t, w.Register(t.Context(), name, d.socket, []string{"1.0.0"}))
	}
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() { assert.NoError(t, w.Run(ctx)) })
	close(s.silent)
	<-s.called
	before := len(l.list())
	for n := int64(10); n < 13; n++ {
		w.driver.SetMaxVolumes(n)
		require.Eventually(t, func() bool { return len(l.list()) > before }, 30*time.Second, 10*time.Millisecond)
		before = len(l.list())
	}
	begun := time.Now()
	cancel()
	wg.Wait()
	assert.Less(t, time.Since(begun), 10*time.Second)
}
