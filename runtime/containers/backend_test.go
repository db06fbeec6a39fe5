package containers_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/runtime"
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

// truncating is a backend whose metadata holds less than a record.
type truncating struct{ *containerstest.Backend }

func (b truncating) Run(ctx context.Context, c containers.Container) (string, error) {
	c.Record = c.Record[:255]
	return b.Backend.Run(ctx, c)
}

func TestABackendThatDoesNotKeepRecordsIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rt := open(t, configOf(t, truncating{newFake(nil)}))
		c := image("long")
		c.Name = "main"
		_, err := rt.SyncPod(t.Context(), runtime.SyncRequest{Pod: &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "a"}, Spec: v1.PodSpec{Containers: []v1.Container{c}},
		}})
		assert.ErrorContains(t, err, "Run has returned, but List has no instance with the Key")
	})
}
