package containers_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubeparts/kubeparts/runtime/containers"
	"github.com/kubeparts/kubeparts/runtime/containers/containerstest"
	"github.com/kubeparts/kubeparts/runtime/fake"
)

// The fake backend, also with a slow and a queued start, and the adapted machine manager keep the
// contract of a backend.
func TestBackendsKeepTheirContract(t *testing.T) {
	suite := func(backend func() containers.Backend) containerstest.Suite {
		return containerstest.Suite{
			New:  func(*testing.T) containers.Backend { return backend() },
			Long: containers.Container{Image: image("long").Image}, Exits: containers.Container{Image: exits(3).Image},
			Stubborn: containers.Container{Image: image("stubborn").Image}, Prints: containers.Container{Image: image("prints").Image}, Within: synctest.Test,
		}
	}
	t.Run("fake", func(t *testing.T) {
		containerstest.TestBackend(t, suite(func() containers.Backend { return newFake(nil) }))
	})
	t.Run("queued", func(t *testing.T) {
		containerstest.TestBackend(t, suite(func() containers.Backend {
			return newFake(func(b *fake.Behavior) { b.QueueDelay = time.Second })
		}))
	})
	t.Run("machines", func(t *testing.T) {
		containerstest.TestBackend(t, suite(func() containers.Backend { return machines{&fakeHypervisor{below: newFake(nil)}} }))
	})
}
