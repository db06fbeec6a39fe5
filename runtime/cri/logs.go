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

// Where logs are is the kubelet's layout (lg-1), which log collectors know:
//
//	<PodLogsDir>/<namespace>_<pod>_<uid>/<container>/<restart count>.log
//	<ContainerLogsDir>/<pod>_<namespace>_<container>-<id>.log, a link to it

// podLogDir returns the directory of a pod's logs (rt-17).
func (r *Runtime) podLogDir(pod *v1.Pod) string {
	return filepath.Join(r.cfg.Dirs.PodLogs, strings.Join([]string{pod.Namespace, pod.Name, string(pod.UID)}, "_"))
}

// logName returns the name of an instance's log.
func logName(attempt uint32) string { return fmt.Sprintf("%d.log", attempt) }

// logDir returns the directory of a container's logs.
func (r *Runtime) logDir(pod *v1.Pod, container string) string {
	return filepath.Join(r.podLogDir(pod), container)
}

// nextLog returns the restart count that follows from the log files of
// containers that are gone: one more than the highest (rt-75, rt-76).
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

// maxLogEntries bounds the directory of a container's logs, in entries.
const maxLogEntries = 10_000

// restartsLogged reads the directory of a container's logs for nextLog.
func (r *Runtime) restartsLogged(pod *v1.Pod, container string) int32 {
	// An error usually means that the container never ran.
	entries, _ := untrusted.ReadDir(r.logDir(pod, container), maxLogEntries)
	var names []string
	for _, e := range entries {
		if !e.IsDir() {
			names = append(names, e.Name())
		}
	}
	return nextLog(names)
}

// maxLinkName is how long the name of a legacy link may be, its suffix included.
const maxLinkName = 255

// linkLog makes the link by which log collectors find a container's log (rt-86).
// Failing in that is not failing to start.
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
		s.r.log.Warn("no link to a container's log", "pod", s.name(), "uid", s.pod.UID, "container", container, "err", err)
	}
}

func linkName(pod, namespace, container, id string) string {
	const suffix = ".log"
	name := fmt.Sprintf("%s_%s_%s-%s", pod, namespace, container, id)
	name = strings.NewReplacer("/", "_", `\`, "_").Replace(name) // an ID is the runtime's word, and must not lead elsewhere
	return name[:min(len(name), maxLinkName-len(suffix))] + suffix
}
