package pipeline

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestDeadlineOf(t *testing.T) { // sl-62
	start := time.Unix(1000, 0)
	pod := new(v1.Pod)
	assert.Zero(t, deadlineOf(pod, start))
	pod.Spec.ActiveDeadlineSeconds = new(int64(60))
	assert.Equal(t, start.Add(time.Minute), deadlineOf(pod, start))
}

func TestStartErrorsFollowTheLastStart(t *testing.T) {
	fail := runtime.Action{Kind: runtime.StartContainer, Target: "web", Err: errors.New("x"), Reason: "ErrImagePull", Message: "no such image"}
	known := startErrors(nil, []runtime.Action{fail})
	assert.Equal(t, map[string]v1.ContainerStateWaiting{"web": {Reason: "ErrImagePull", Message: "no such image"}}, known)

	same := startErrors(known, []runtime.Action{{Kind: runtime.KillContainer, Target: "web"}})
	assert.Equal(t, known, same, "only starts count (sl-61)")

	cancelled := fail
	cancelled.Err, cancelled.Reason = fmt.Errorf("pull: %w", context.Canceled), "Cancelled"
	assert.Equal(t, known, startErrors(known, []runtime.Action{cancelled}), "a canceled start is no failure")

	after := startErrors(known, []runtime.Action{{Kind: runtime.StartContainer, Target: "web"}})
	assert.Empty(t, after)
	assert.Len(t, known, 1, "the map that readers hold is not changed")
}
