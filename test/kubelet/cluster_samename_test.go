package kubelet

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func clusterSameName(t *testing.T, r *room) {
	seen := map[types.UID]bool{}
	create := func() (pod *v1.Pod) {
		r.until("the name is free", func() (err error) {
			pod, err = r.api.CoreV1().Pods(r.name).Create(t.Context(), &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "again"}, Spec: spec("trap 'exit 0' TERM; sleep 3600 & wait")}, metav1.CreateOptions{})
			return err
		})
		require.False(t, seen[pod.UID])
		seen[pod.UID] = true
		return pod
	}
	var lost []types.UID
	for i := range 50 {
		pod := create()
		if i%3 == 2 {
			// Not even started, perhaps.
			r.delete("again", -1)
			continue
		}
		// A status that arrives between the two writes with which the API server deletes a pod without a node has it
		// deleted once more, by its name: that may be the next pod already.
		is := r.untilRunsOrLost("again")
		for ; is == nil; is = r.untilRunsOrLost("again") {
			lost = append(lost, pod.UID)
			require.Less(t, len(lost), 5)
			pod = create()
		}
		require.Equal(t, pod.UID, is.UID)
		require.Zero(t, is.Status.ContainerStatuses[0].RestartCount, "the pod before it is another one")
		r.delete("again", -1)
		if i%2 == 0 {
			r.untilGone("again")
		}
	}
	r.untilGone("again")
	r.until("nothing is left", func() error {
		if left := r.running(); len(left) > 0 {
			return fmt.Errorf("%v", left)
		}
		return nil
	})
	requests, err := r.control.PodRequests(r.name)
	require.NoError(t, err)
	deletions := 0
	for _, request := range requests {
		if strings.Contains(request, " system:node:node delete ") {
			deletions++
			require.Contains(t, request, `preconditions {"uid":`, "the node deletes only the pod that it means")
			for _, uid := range lost {
				require.NotContains(t, request, string(uid), "the node deleted a pod that was to run")
			}
		}
	}
	require.NotZero(t, deletions)
}
