package allocation_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/allocation"
	"github.com/kubeparts/kubeparts/runtime"
)

// Reading the Node object again may take as long as the API server is silent.
func TestARefreshThatDoesNotReturnDelaysNoOtherPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		m, err := allocation.Open(allocation.Config{
			Admit: func(_ context.Context, req allocation.Request) *runtime.Rejection {
				if req.Pod.Name == "rejected" {
					return &runtime.Rejection{Reason: "NodeAffinity"}
				}
				return nil
			},
			Refresh: func(ctx context.Context, _ *runtime.Rejection) bool {
				<-ctx.Done()
				return false
			},
		})
		require.NoError(t, err)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		done := make(chan *runtime.Rejection)
		go func() { done <- m.Admit(ctx, namedPod("rejected")) }()
		synctest.Wait()

		other := namedPod("other")
		assert.Nil(t, m.Admit(ctx, other))
		assert.Equal(t, other, m.Allocate(ctx, other, nil))
		assert.Zero(t, time.Since(started))
		assert.Equal(t, "NodeAffinity", (<-done).Reason)
	})
}

func TestARejectionIsDecidedAgainOnlyIfItsReasonsHaveChanged(t *testing.T) {
	for changed, want := range map[bool]int{false: 1, true: 2} {
		calls := 0
		m, err := allocation.Open(allocation.Config{
			Admit: func(context.Context, allocation.Request) *runtime.Rejection {
				calls++
				return &runtime.Rejection{Reason: "NodeAffinity"}
			},
			Refresh: func(context.Context, *runtime.Rejection) bool { return changed },
		})
		require.NoError(t, err)
		assert.NotNil(t, m.Admit(t.Context(), namedPod("p")))
		assert.Equal(t, want, calls)
	}
}

func namedPod(name string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-of-" + name)}, Spec: v1.PodSpec{Containers: []v1.Container{{Name: "c"}}}}
}
