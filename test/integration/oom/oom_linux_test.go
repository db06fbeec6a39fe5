package oom_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/cm/cgroups"
	"github.com/kubeparts/kubeparts/cm/cgroups/host"
	"github.com/kubeparts/kubeparts/cm/oom"
	"github.com/kubeparts/kubeparts/internal/lab"
)

const asConsumer = "KUBEPARTS_TEST_CONSUMER"

func TestMain(m *testing.M) {
	if dirs := os.Getenv(asConsumer); dirs != "" {
		for dir := range strings.SplitSeq(dirs, ":") {
			_ = os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0)
		}
		var consumer [][]byte
		for range 100 {
			piece := make([]byte, 4<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			consumer = append(consumer, piece)
		}
		fmt.Println(len(consumer))
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestIntegrationAnOOMKillIsDetected(t *testing.T) {
	lab.NeedHere(t, "root")
	tree, err := host.New(host.Config{})
	require.NoError(t, err)
	base := cgroups.Name{fmt.Sprintf("kubeparts-oom-%d", os.Getpid())}
	t.Cleanup(func() { assert.NoError(t, tree.Remove(context.WithoutCancel(t.Context()), base)) })
	node, err := cm.New(cm.Config{Tree: tree, Root: base, Capacity: v1.ResourceList{v1.ResourceMemory: resource.MustParse("1Gi")}})
	require.NoError(t, err)
	require.NoError(t, node.Setup(t.Context()))
	overLimit := &v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "1-2"}, Spec: v1.PodSpec{Containers: []v1.Container{{
		Resources: v1.ResourceRequirements{Limits: v1.ResourceList{v1.ResourceMemory: resource.MustParse("40Mi")}},
	}}}}
	require.NoError(t, node.Ensure(t.Context(), overLimit))
	pod := node.PodName(overLimit)
	container := pod.Child("c1")
	require.NoError(t, tree.Apply(t.Context(), container, cgroups.Resources{}))

	kills := make(chan oom.Kill, 16)
	hear := func(k oom.Kill) { kills <- k }
	log, err := oom.New(oom.Config{Kmsg: oom.OpenKmsg, Handle: hear})
	require.NoError(t, err)
	count, err := oom.New(oom.Config{Cgroups: node, Handle: hear, Period: 50 * time.Millisecond})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 2)
	go func() { done <- log.Run(ctx) }()
	go func() { done <- count.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-done)
		assert.NoError(t, <-done)
	})

	var seen [2]bool
	for deadline := time.After(90 * time.Second); !seen[0] || !seen[1]; {
		// The watchers may have started after the first one.
		consumer := exec.Command(os.Args[0])
		consumer.Env = append(os.Environ(), asConsumer+"="+strings.Join(tree.Dirs(container), ":"))
		require.Error(t, consumer.Run(), "it may use a tenth of what it allocates")
		select {
		case k := <-kills:
			t.Log(k)
			assert.True(t, strings.HasSuffix(k.Cgroup, pod.String()), k.Cgroup)
			assert.False(t, k.System())
			if k.PID != 0 {
				seen[0] = true
				assert.True(t, strings.HasSuffix(k.Victim, container.String()), k.Victim)
			} else {
				seen[1] = true
			}
		case <-time.After(300 * time.Millisecond):
		case <-deadline:
			t.Fatalf("seen in the log and in counters: %v", seen)
		}
	}
}
