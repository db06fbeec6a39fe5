package fakecri

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/fake"
)

func TestAFollowerReceivesNewLinesOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, err := New(Config{Behaviors: fake.Behaviors{Containers: map[string]fake.Behavior{"web": {
			Exit: &fake.Exit{After: 5 * time.Second}, Logs: []fake.LogLine{{Text: "first"}, {Text: "%d", After: time.Second, Every: time.Second, Err: true}},
		}}}})
		require.NoError(t, err)
		ctx := t.Context()
		image := &runtimeapi.ImageSpec{Image: "app"}
		_, err = r.PullImage(ctx, image, nil, nil)
		require.NoError(t, err)
		pod := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "a", Uid: "a"}}
		sandbox, err := r.RunPodSandbox(ctx, pod, "")
		require.NoError(t, err)
		id, err := r.CreateContainer(ctx, sandbox, &runtimeapi.ContainerConfig{Metadata: &runtimeapi.ContainerMetadata{Name: "web"}, Image: image}, pod)
		require.NoError(t, err)
		require.NoError(t, r.StartContainer(ctx, id))
		c, err := r.containers.find(id)
		require.NoError(t, err)

		time.Sleep(2500 * time.Millisecond)
		start := time.Now()
		var lines []string
		emit := func(_ time.Time, line string, stderr bool) error {
			lines = append(lines, fmt.Sprintf("%v %s %v", time.Since(start), line, stderr))
			return nil
		}
		// A follower that stops does not affect the others.
		short, cancel := context.WithTimeout(ctx, time.Millisecond)
		defer cancel()
		assert.ErrorIs(t, r.follow(short, c, emit), context.DeadlineExceeded)
		broken := errors.New("broken pipe")
		go func() {
			assert.ErrorIs(t, r.follow(ctx, c, func(time.Time, string, bool) error { return broken }), broken)
		}()
		start = time.Now()
		require.NoError(t, r.follow(ctx, c, emit))
		assert.Equal(t, []string{"499ms 3 true", "1.499s 4 true", "2.499s 5 true"}, lines, "the last line at the exit")
		lines = nil
		require.NoError(t, r.follow(ctx, c, emit))
		assert.Empty(t, lines, "the container has exited")
	})
}
