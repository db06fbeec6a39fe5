package kubelet

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime"
)

// clinging is a podworker.Handler whose pods stop, and can't be cleaned up.
type clinging struct{}

func (clinging) Sync(context.Context, podworker.Work) (podworker.Next, error) {
	return podworker.Next{}, nil
}
func (clinging) Terminate(context.Context, podworker.Work) error { return nil }
func (clinging) Cleanup(ctx context.Context, _ podworker.Work) error {
	<-ctx.Done()
	return ctx.Err()
}

type unseen struct{}

func (unseen) Get(uid types.UID) (*runtime.PodStatus, error) {
	return &runtime.PodStatus{UID: uid, ObservedAt: time.Now()}, nil
}

func (u unseen) GetNewerThan(_ context.Context, uid types.UID, _ time.Time) (*runtime.PodStatus, error) {
	return u.Get(uid)
}

// A pod that has stopped and whose volumes can't be taken away comes first in every
// ranking, since nothing is known of what it uses: nobody else would ever go.
func TestAPodThatHasStoppedIsNotEvictedInPlaceOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		workers, err := podworker.New(podworker.Config{Handler: clinging{}, Statuses: unseen{}})
		require.NoError(t, err)
		loop, err := podworker.NewLoop(podworker.LoopConfig{Workers: workers})
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		ran := make(chan error)
		go func() { ran <- loop.Run(ctx) }()
		named := func(uid string) *v1.Pod {
			return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: uid, UID: types.UID(uid)}}
		}
		loop.AddPods([]*v1.Pod{named("stuck"), named("hungry")})
		synctest.Wait()
		pods := view{workers: workers, loop: loop}
		assert.Len(t, pods.running(), 2)
		<-workers.Kill("stuck", podworker.KillOptions{Evict: true})
		synctest.Wait()
		state, _ := workers.Known("stuck")
		require.Equal(t, podworker.Cleaning, state)
		require.Len(t, pods.running(), 1)
		assert.Equal(t, "hungry", pods.running()[0].Name)
		cancel()
		require.NoError(t, <-ran)
	})
}

// cm-22, ev-9: what eviction keeps free by default is not for pods either.
func TestWhatEvictionKeepsFreeByDefaultIsReserved(t *testing.T) {
	capacity := v1.ResourceList{v1.ResourceMemory: resource.MustParse("8Gi"), v1.ResourceEphemeralStorage: resource.MustParse("100Gi")}
	for name, tc := range map[string]struct {
		hard  map[string]string
		merge bool
		want  string
	}{
		"nothing is set":     {nil, false, "8092Mi"},
		"none is wanted":     {map[string]string{}, false, "8Gi"},
		"another signal is":  {map[string]string{"nodefs.available": "5%"}, false, "8Gi"},
		"beside the default": {map[string]string{"nodefs.available": "5%"}, true, "8092Mi"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := reservedOf(kubeletconfig.KubeletConfiguration{EvictionHard: tc.hard, MergeDefaultEvictionSettings: &tc.merge}, capacity)
			require.NoError(t, err)
			memory := cm.Allocatable(capacity, r)[v1.ResourceMemory]
			assert.Zero(t, memory.Cmp(resource.MustParse(tc.want)), memory.String())
		})
	}
}
