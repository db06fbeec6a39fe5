package kubelet

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/cm"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/internal/lab"
)

// small mounts a file system of so many bytes, and unmounts it when the test ends.
func small(t *testing.T, size string) string {
	t.Helper()
	dir, err := os.MkdirTemp("", fmt.Sprintf("kubeparts-lab-%d-", os.Getpid())) // as a daemon's, so that it is swept up
	require.NoError(t, err)
	require.NoError(t, syscall.Mount("small", dir, "tmpfs", 0, "size="+size))
	t.Cleanup(func() {
		for range 100 { // mounts of others in it may take a moment to disappear
			if exec.Command("umount", "--recursive", dir).Run() == nil { // the agent's root is a mount point below it
				break
			}
			time.Sleep(50 * time.Millisecond)
		}
		assert.NoError(t, os.Remove(dir))
	})
	return dir
}

// isEvicted checks a pod's final status, whose message must contain message.
func isEvicted(pod v1.Pod, resource, message string) error {
	s := pod.Status
	if s.Phase != v1.PodFailed || s.Reason != "Evicted" {
		return fmt.Errorf("%s is %s %s %s", pod.Name, s.Phase, s.Reason, s.Message)
	}
	if want := "The node was low on resource: " + resource + ". Threshold quantity: "; !strings.HasPrefix(s.Message, want) || !strings.Contains(s.Message, message) {
		return fmt.Errorf("%s has message %q", pod.Name, s.Message)
	}
	for _, c := range s.Conditions {
		if c.Type == v1.DisruptionTarget && c.Status == v1.ConditionTrue && c.Reason == v1.PodReasonTerminationByKubelet && c.Message == s.Message {
			return nil
		}
	}
	return fmt.Errorf("%s has no DisruptionTarget: %v", pod.Name, s.Conditions)
}

// diskPressure lets a pod fill the only disk of the node: it is evicted, the pod that writes less is
// not, and pods that start meanwhile are rejected.
func diskPressure(t *testing.T, w *world, root string, megabytes int) { // ev-26, ev-39, ev-54
	fill := func(mb int) string {
		return fmt.Sprintf("trap 'exit 0' TERM; sleep 1; dd if=/dev/zero of=filled bs=1048576 count=%d; sleep 3600 & wait", mb)
	}
	w.put("modest", manifest("modest", containers(container("main", fill(1)))))
	w.put("hog", manifest("hog", containers(container("main", fill(megabytes)))))
	w.start("--root-dir="+root, "--eviction-hard=nodefs.available<40%", "--eviction-minimum-reclaim=nodefs.available=1Mi", "--eviction-pressure-transition-period=5s")
	w.until("both run", func() error {
		if pods := w.pods(); !runs(pods["modest"]) || !runs(pods["hog"]) {
			return fmt.Errorf("%v", lives(pods))
		}
		return nil
	})
	w.until("the hog is evicted", func() error {
		return isEvicted(w.pods()["hog"], "ephemeral-storage", "Container main was using ")
	})
	assert.Contains(t, w.out.String(), "EvictionThresholdMet: Attempting to reclaim ephemeral-storage")
	assert.Contains(t, w.out.String(), "node pressure: [DiskPressure]")
	w.put("late", manifest("late", containers(container("main", untilTerm))))
	w.until("a new pod is rejected meanwhile", func() error {
		if s := w.pods()["late"].Status; s.Reason != "Evicted" || s.Message != "Pod was rejected: The node had condition: [DiskPressure]. " {
			return fmt.Errorf("%s %s %s", s.Phase, s.Reason, s.Message)
		}
		return nil
	})
	w.until("the disk has room", func() error {
		var fs syscall.Statfs_t
		require.NoError(t, syscall.Statfs(root, &fs))
		if fs.Bavail*10 < fs.Blocks*4 {
			return fmt.Errorf("%d of %d blocks", fs.Bavail, fs.Blocks)
		}
		return nil
	})
	w.untilLogged("node pressure: []")
	require.True(t, runs(w.pods()["modest"]))
	w.put("after", manifest("after", containers(container("main", untilTerm))))
	w.until("a later pod runs", func() error {
		if after := w.pods()["after"]; !runs(after) {
			return fmt.Errorf("%s %s", after.Status.Phase, after.Status.Message)
		}
		return nil
	})
}

func TestIntegrationAFullDiskEvictsTheRightProcess(t *testing.T) {
	t.Parallel()
	lab.Need(t, "linux", "root")
	root := small(t, "64m")
	w := &world{agent: newAgent(t, "process")}
	diskPressure(t, w, root, 45)
}

func TestIntegrationAFullDiskEvictsTheRightContainer(t *testing.T) {
	lab.Need(t, "containerd")
	dir := small(t, "400m")
	t.Setenv("TMPDIR", dir) // the daemon's images and layers are there, too
	w := onContainerd(t)
	diskPressure(t, w, filepath.Join(dir, "root"), 270)
}

// eat is a program that allocates so much memory, a second after its start: tail
// buffers input without a newline.
func eat(mb int) string {
	return fmt.Sprintf("trap 'exit 0' TERM; (sleep 1; head -c %d /dev/zero; exec sleep 3600) | tail & wait", mb<<20)
}

// The memory of the node is the memory of a cgroup that contains the agent and all of its
// pods. The kernel notifies the agent when it runs low.
func TestIntegrationMemoryPressureEvictsTheRightPod(t *testing.T) { // ev-37, ev-58
	t.Parallel()
	lab.Need(t, "linux", "root")
	if _, err := os.Stat("/sys/fs/cgroup/memory/cgroup.procs"); err != nil {
		t.Skip("this machine has no cgroup v1 with memory:", err)
	}
	group := filepath.Join("/sys/fs/cgroup/memory", fmt.Sprintf("kubeparts-evict-%d", os.Getpid()))
	require.NoError(t, os.Mkdir(group, 0o755))
	t.Cleanup(func() {
		var err error
		for range 200 {
			if err = os.Remove(group); err == nil {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
		t.Error(err)
	})
	require.NoError(t, os.WriteFile(filepath.Join(group, "memory.limit_in_bytes"), []byte("800M"), 0o600))

	w := &world{agent: newAgent(t, "process")}
	w.start("--eviction-hard=memory.available<400Mi", "--memory-cgroup="+group, "--kernel-memcg-notification", "--eviction-pressure-transition-period=5s")
	require.NoError(t, os.WriteFile(filepath.Join(group, "cgroup.procs"), fmt.Append(nil, w.cmd.Process.Pid), 0o600))
	w.put("modest", manifest("modest", containers(container("main", eat(50), "resources: {requests: {memory: 200Mi}}"))))
	w.put("important", manifest("important", "priority: 1000", containers(container("main", eat(20)))))
	w.put("hog", manifest("hog", containers(container("main", eat(420)))))
	w.until("the hog is evicted", func() error {
		return isEvicted(w.pods()["hog"], "memory", "request is 0, has larger consumption of memory. ")
	})
	w.untilLogged("node pressure: [MemoryPressure]")
	w.untilLogged("EvictionThresholdMet: Attempting to reclaim memory")
	w.until("there is memory", func() error {
		figure, err := eviction.CgroupMemory(os.DirFS(group))(t.Context())
		require.NoError(t, err)
		if figure.Available < 400<<20 {
			return fmt.Errorf("%d bytes are available", figure.Available)
		}
		return nil
	})
	w.untilLogged("node pressure: []")
	pods := w.pods()
	require.True(t, runs(pods["modest"]), "%v", pods["modest"].Status)
	require.True(t, runs(pods["important"]), "%v", pods["important"].Status)
}

// All pods of containerd together have 800 MiB, since the rest is reserved; half of
// them must stay free. The kernel notifies the agent when their cgroup runs low.
func TestIntegrationMemoryPressureEvictsTheRightContainer(t *testing.T) { // ev-7, ev-37, ev-59, cm-22
	t.Parallel()
	w := onContainerd(t)
	capacity, err := cm.ReadCapacity(os.DirFS("/"))
	require.NoError(t, err)
	w.start("--eviction-hard=memory.available<400Mi", "--eviction-pressure-transition-period=1s", "--kernel-memcg-notification",
		fmt.Sprintf("--system-reserved=memory=%d", capacity.Memory().Value()-800<<20))
	w.put("modest", manifest("modest", containers(container("main", eat(50), "resources: {requests: {memory: 200Mi}}"))))
	w.put("important", manifest("important", "priority: 1000", containers(container("main", eat(20)))))
	w.until("two run", func() error {
		if pods := w.pods(); !runs(pods["modest"]) || !runs(pods["important"]) {
			return fmt.Errorf("%v", lives(pods))
		}
		return nil
	})
	w.put("hog", manifest("hog", containers(container("main", eat(420)))))
	w.until("the hog is evicted", func() error {
		return isEvicted(w.pods()["hog"], "memory", "request is 0, has larger consumption of memory. ")
	})
	w.untilLogged("node pressure: [MemoryPressure]")
	w.untilLogged("EvictionThresholdMet: Attempting to reclaim memory")
	w.untilLogged("node pressure: []")
	pods := w.pods()
	require.True(t, runs(pods["modest"]), "%v", pods["modest"].Status)
	require.True(t, runs(pods["important"]), "%v", pods["important"].Status)
	w.put("after", manifest("after", containers(container("main", untilTerm))))
	w.until("a later pod runs", func() error {
		if after := w.pods()["after"]; !runs(after) {
			return fmt.Errorf("%s %s", after.Status.Phase, after.Status.Message)
		}
		return nil
	})
}

// Images fill their disk, which is not the node's: unused images are removed, no pod is
// evicted, and later pods start. A disk that is filled by others is reported.
func TestIntegrationImagesGiveWay(t *testing.T) { // ev-26, ev-36, ig-3, ig-14, ig-16, ig-19
	t.Parallel()
	daemon := lab.Containerd(t, lab.ContainerdConfig{RootMiB: 384})
	w := &world{agent: newAgent(t, daemon.Endpoint), daemon: daemon}
	fill := func(name string, mib int) {
		require.NoError(t, os.WriteFile(filepath.Join(daemon.Root(), name), make([]byte, mib<<20), 0o600))
	}
	registry := lab.NewRegistry(t)
	of := func(name, script string, spec ...string) string {
		return manifest(name, append(spec, containers(container("main", script, "image: "+registry.PushLargeBusybox(name+":1", 8<<20))))...)
	}
	has := func(image string) bool {
		images, err := daemon.Images(t.Context())
		require.NoError(t, err)
		return slices.ContainsFunc(images, func(name string) bool { return strings.HasSuffix(name, "/"+image) })
	}
	stays := of("stays", untilTerm)
	w.put("stays", stays)
	var jobs []string
	for i := range 8 {
		name := fmt.Sprintf("job%d", i)
		jobs = append(jobs, name)
		w.put(name, of(name, "exit 0", never))
	}
	w.start("--minimum-image-ttl-duration=1ms", "--eviction-hard=imagefs.available<40%", "--eviction-pressure-transition-period=1s")
	w.until("the jobs have ended", func() error { // an image that is in use does not give way, and its pod would
		pods := w.pods()
		for _, job := range jobs {
			if phase := pods[job].Status.Phase; phase != v1.PodSucceeded {
				return fmt.Errorf("%s: %s", job, phase)
			}
		}
		return nil
	})
	fill("file", 80)
	w.untilLogged("EvictionThresholdMet: Attempting to reclaim ephemeral-storage")
	w.untilLogged("node pressure: [DiskPressure]")
	w.untilLogged("node pressure: []")
	pods := w.pods()
	require.True(t, runs(pods["stays"]), "%v", pods["stays"].Status)
	for _, job := range jobs {
		assert.Equal(t, v1.PodSucceeded, pods[job].Status.Phase, "%s: %s", job, pods[job].Status.Message)
		w.take(job)
	}
	assert.True(t, has("stays:1"))
	assert.True(t, has("pause:1"), "used by all sandboxes")
	assert.True(t, slices.ContainsFunc(jobs, func(job string) bool { return !has(job + ":1") }), "no image was removed")
	w.put("after", of("after", untilTerm))
	w.until("a later pod runs", func() error {
		if after := w.pods()["after"]; !runs(after) {
			return fmt.Errorf("%s %s", after.Status.Phase, after.Status.Message)
		}
		return nil
	})

	// An agent that requires more space than can be freed reports that.
	w.take("after")
	w.until("nothing of it is left", func() error {
		for _, c := range w.mustList().containers {
			if strings.HasPrefix(c.String(), "default/after-") {
				return fmt.Errorf("%s still exists", c)
			}
		}
		return nil
	})
	w.kill()
	fill("ballast", 100)
	w.start("--minimum-image-ttl-duration=1ms", "--image-gc-high-threshold=30", "--image-gc-low-threshold=10")
	w.untilLogged("FreeDiskSpaceFailed: Failed to garbage collect required amount of images. Attempted to free ")
	assert.True(t, has("stays:1"))
	require.True(t, runs(w.pods()["stays"]))
}
