package cri

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/checkpoint"
	"github.com/kubeparts/kubeparts/internal/untrusted"
	"github.com/kubeparts/kubeparts/runtime"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

// podLogsOf and messageDirOf return the directories of a pod's logs and termination
// messages. They return "" if the name, which the runtime reports, is not a valid file
// name.
func (r *Runtime) podLogsOf(pod *runtime.Pod) string {
	name := strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_")
	if !isPathElement(name) {
		return ""
	}
	return filepath.Join(r.cfg.Dirs.PodLogs, name)
}

func (r *Runtime) messageDirOf(pod types.UID) string {
	if !isPathElement(string(pod)) {
		return ""
	}
	return filepath.Join(r.cfg.Dirs.Root, "pods", string(pod), messagesDir)
}

// isBelow reports whether path is inside dir and not dir itself.
func isBelow(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && rel != "." && filepath.IsLocal(rel)
}

// removeRotated removes a log and its rotated files.
func removeRotated(path string) error {
	entries, err := untrusted.ReadDir(filepath.Dir(path), maxLogEntries)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	errs := []error{err} // of a directory that is too large, the first entries are returned
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), filepath.Base(path)) {
			if err := os.Remove(filepath.Join(filepath.Dir(path), e.Name())); err != nil && !os.IsNotExist(err) {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}

// removeLink removes the legacy link to a container's log.
func (r *Runtime) removeLink(labels map[string]string, id string) {
	if r.cfg.Dirs.ContainerLogs == "" {
		return
	}
	link := filepath.Join(r.cfg.Dirs.ContainerLogs, linkName(labels[podconfig.LabelPodName], labels[podconfig.LabelPodNamespace], labels[podconfig.LabelContainerName], id))
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		r.log.Warn("Failed to remove link to container log", "path", link, "err", err)
	}
}

// removeDeadLinks removes dangling links to logs of this node's pods, except those of
// containers that have not exited: their log may be created or rotated at the moment.
func (r *Runtime) removeDeadLinks(pods []*runtime.Pod) error {
	if r.cfg.Dirs.ContainerLogs == "" {
		return nil
	}
	entries, err := os.ReadDir(r.cfg.Dirs.ContainerLogs)
	if err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("cri: read log links: %w", err)
	}
	alive := map[string]bool{}
	for _, pod := range pods {
		for _, c := range pod.Containers {
			if c.State != runtime.ContainerExited {
				alive[linkName(pod.Name, pod.Namespace, c.Name, runtimeID(c.ID))] = true
			}
		}
	}
	var errs []error
	for _, e := range entries {
		path := filepath.Join(r.cfg.Dirs.ContainerLogs, e.Name())
		if e.Type()&os.ModeSymlink == 0 || filepath.Ext(path) != ".log" || alive[e.Name()] {
			continue
		}
		if _, err := os.Stat(path); os.IsNotExist(err) && r.ownsLink(path) {
			if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
				errs = append(errs, fmt.Errorf("cri: remove log link: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// ownsLink reports whether a link leads to a log of a pod that belongs to this node.
func (r *Runtime) ownsLink(path string) bool {
	if r.cfg.Providers.Ledger == nil {
		return true
	}
	log, err := os.Readlink(path)
	if err != nil || !isBelow(r.cfg.Dirs.PodLogs, log) {
		return false
	}
	return r.cfg.Providers.Ledger.Owns(podOfLog(filepath.Base(filepath.Dir(filepath.Dir(log)))))
}

// removeDirs removes the log directories of removed pods that belong to this node, and the entries of the pods'
// directories that this package creates. It keeps both while the runtime has a container
// or sandbox of the pod: pods are the runtime's.
func (r *Runtime) removeDirs(ctx context.Context, pods []*runtime.Pod, keep func(types.UID) bool) error {
	present := map[types.UID]bool{}
	for _, p := range pods {
		present[p.UID] = true
	}
	retained := func(uid types.UID) bool { return uid == "" || present[uid] || keep(uid) }
	r.checkpoints.retain(retained)
	r.terminations.retain(retained)
	r.imageMounts.retain(retained)
	r.announcements.retain(retained)
	r.unsupported.retain(retained)
	r.backoff.Retain(retained) // also of pods that terminated without KillPod
	var errs []error
	logs, err := os.ReadDir(r.cfg.Dirs.PodLogs)
	if err != nil && !os.IsNotExist(err) {
		errs = append(errs, err)
	}
	for _, e := range logs {
		if uid := podOfLog(e.Name()); e.IsDir() && r.cfg.Providers.Ledger.Owns(uid) && !retained(uid) {
			errs = append(errs, removeTree(ctx, filepath.Join(r.cfg.Dirs.PodLogs, e.Name())))
		}
	}
	dirs, err := os.ReadDir(filepath.Join(r.cfg.Dirs.Root, "pods"))
	if err != nil && !os.IsNotExist(err) {
		errs = append(errs, err)
	}
	for _, e := range dirs {
		if e.IsDir() && !retained(types.UID(e.Name())) {
			errs = append(errs, removePodDir(ctx, filepath.Join(r.cfg.Dirs.Root, "pods", e.Name())))
		}
	}
	return errors.Join(errs...)
}

// removePodDir removes the entries of a pod's directory that this package creates, and the
// directory if it is then empty. Other entries belong to the volume manager or to other
// components.
func removePodDir(ctx context.Context, dir string) error {
	errs := []error{removeTree(ctx, filepath.Join(dir, messagesDir))}
	for _, name := range []string{hostsFile, checkpointFile, checkpointFile + checkpoint.Temporary} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !os.IsNotExist(err) {
			errs = append(errs, err)
		}
	}
	_ = os.Remove(dir) // fails if it is not empty
	return errors.Join(errs...)
}

func removeTree(ctx context.Context, dir string) error {
	if err := untrusted.RemoveTree(ctx, dir); err != nil {
		return fmt.Errorf("cri: remove %s: %w", dir, err)
	}
	return nil
}
