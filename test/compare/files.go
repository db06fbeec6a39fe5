//go:build unix

package compare

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	cri "k8s.io/cri-client/pkg"

	"github.com/kubeparts/kubeparts/internal/lab"
)

// maxContent is the size of the largest files whose contents are compared.
const maxContent = 4096

// describeTree describes the files below a directory by their paths below it: their modes,
// owners, the targets of links, and the contents of small files if with reports so. Files
// that are removed meanwhile are omitted.
func describeTree(dir string, with func(path string) bool) map[string]string {
	found := map[string]string{}
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		below, _ := filepath.Rel(dir, path)
		text := info.Mode().String()
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			text += fmt.Sprintf(" %d:%d", stat.Uid, stat.Gid)
		}
		switch {
		case info.Mode()&fs.ModeSymlink != 0:
			target, _ := os.Readlink(path)
			text += " -> " + target
		case info.Mode().IsRegular() && info.Size() <= maxContent && with(below):
			data, _ := os.ReadFile(path)
			text += fmt.Sprintf(" %q", data)
		}
		found[below] = text
		return nil
	})
	return found
}

// containerLinks is the directory where node agents link the logs of containers.
const containerLinks = "/var/log/containers"

// linksTo returns the links of a directory to files below another, with their targets.
func linksTo(dir, below string) map[string]string {
	found := map[string]string{}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if target, err := os.Readlink(filepath.Join(dir, e.Name())); err == nil && strings.HasPrefix(target, below+"/") {
			found[e.Name()] = target
		}
	}
	return found
}

// A running is a running container.
type running struct {
	uid, name string // of the pod, of the container
	pid       int
}

// runningContainers returns the running containers, from containerd itself.
func runningContainers(ctx context.Context, endpoint string) ([]running, error) {
	rt, err := cri.NewRemoteRuntimeServiceBuilder().WithEndpoint(endpoint).WithConnectionTimeout(lab.Limit(90 * time.Second)).Build(ctx)
	if err != nil {
		return nil, err
	}
	defer rt.Close(ctx)
	state := &runtimeapi.ContainerFilter{State: &runtimeapi.ContainerStateValue{State: runtimeapi.ContainerState_CONTAINER_RUNNING}}
	list, err := rt.ListContainers(ctx, state)
	if err != nil {
		return nil, err
	}
	var all []running
	for _, c := range list {
		status, err := rt.ContainerStatus(ctx, c.Id, true)
		if err != nil {
			continue // it has exited
		}
		var info struct{ PID int }
		if err := json.Unmarshal([]byte(status.Info["info"]), &info); err != nil {
			return nil, fmt.Errorf("the information about container %s: %w", c.Id, err)
		}
		all = append(all, running{c.Labels["io.kubernetes.pod.uid"], c.Metadata.Name, info.PID})
	}
	return all, nil
}

// networkFiles returns the files of a container that the node agent or the runtime writes.
func networkFiles(pid int) map[string]string {
	found := map[string]string{}
	for _, name := range []string{"/etc/hosts", "/etc/resolv.conf", "/etc/hostname"} {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/root%s", pid, name))
		if err != nil {
			found[name] = "missing"
			continue
		}
		found[name] = string(data)
	}
	return found
}
