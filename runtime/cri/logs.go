package cri

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/internal/untrusted"
)

// Logs have the kubelet's layout, which log collectors depend on:
//
//	<PodLogsDir>/<namespace>_<pod>_<uid>/<container>/<restart count>.log
//	<ContainerLogsDir>/<pod>_<namespace>_<container>-<id>.log, a link to it

// podLogDir returns the directory of a pod's logs.
func (r *Runtime) podLogDir(pod *v1.Pod) string {
	return filepath.Join(r.cfg.Dirs.PodLogs, strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_"))
}

// logName returns the name of an instance's log.
func logName(attempt uint32) string { return fmt.Sprintf("%d.log", attempt) }

// logDir returns the directory of a container's logs.
func (r *Runtime) logDir(pod *v1.Pod, container string) string {
	return filepath.Join(r.podLogDir(pod), container)
}

// nextLog returns the restart count derived from the log files of removed instances: one
// more than the highest.
func nextLog(names []string) int32 {
	next := int32(0)
	for _, name := range names {
		number, rest, ok := strings.Cut(name, ".")
		if !ok || rest != "log" && !strings.HasPrefix(rest, "log.") {
			continue
		}
		n := int32(0)
		if _, err := fmt.Sscanf(number, "%d", &n); err == nil && fmt.Sprint(n) == number && n >= next && n < math.MaxInt32 {
			next = n + 1
		}
	}
	return next
}

// maxLogEntries is the maximum number of entries read from a log directory.
const maxLogEntries = 10_000

// restartsLogged reads the directory of a container's logs for nextLog.
func (r *Runtime) restartsLogged(pod *v1.Pod, container string) int32 {
	// The directory usually does not exist because the container never ran.
	entries, _ := untrusted.ReadDir(r.logDir(pod, container), maxLogEntries)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return nextLog(names)
}

// maxLinkName is the maximum length of the name of a legacy link, in bytes.
const maxLinkName = 255

// linkLog creates the legacy link to a container's log. A failure is logged only.
func (s *podSync) linkLog(container string, inst *instance) {
	if s.r.cfg.Dirs.ContainerLogs == "" {
		return
	}
	log := filepath.Join(s.r.logDir(s.pod, container), logName(inst.attempt))
	if _, err := os.Stat(log); err != nil {
		return
	}
	link := filepath.Join(s.r.cfg.Dirs.ContainerLogs, linkName(s.pod.Name, s.pod.Namespace, container, inst.id))
	err := os.MkdirAll(s.r.cfg.Dirs.ContainerLogs, 0o755)
	if err == nil {
		err = os.Symlink(log, link)
	}
	if err != nil && !os.IsExist(err) {
		s.r.log.Warn("Failed to create link to container log", "pod", s.pod.Namespace+"/"+s.pod.Name, "podUID", s.pod.UID, "containerName", container, "err", err)
	}
}

func linkName(pod, namespace, container, id string) string {
	const suffix = ".log"
	name := fmt.Sprintf("%s_%s_%s-%s", pod, namespace, container, id)
	name = strings.NewReplacer("/", "_", `\`, "_").Replace(name) // the runtime chooses the ID, which must not change the directory
	return name[:min(len(name), maxLinkName-len(suffix))] + suffix
}
