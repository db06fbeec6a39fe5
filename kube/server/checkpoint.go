package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kubeparts/kubeparts/runtime"
)

// checkpoint answers /checkpoint/{namespace}/{pod}/{container} (sv-11).
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	does, can := runtime.As[runtime.Checkpointer](s.cfg.Runtime)
	if !can || s.cfg.CheckpointDir == "" {
		refuse(w, http.StatusNotFound, "this node makes no checkpoints\n")
		return
	}
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, ok := s.cfg.Pods.Pod(namespace, name)
	if !ok {
		refuse(w, http.StatusNotFound, "pod does not exist\n")
		return
	}
	if !hasContainer(pod, container) {
		refuse(w, http.StatusNotFound, fmt.Sprintf("container %v does not exist\n", container))
		return
	}
	timeout, err := checkpointTimeout(r.URL.Query()["timeout"])
	if err != nil {
		refuse(w, http.StatusNotFound, err.Error()+"\n")
		return
	}
	status, err := s.cfg.Runtime.PodStatus(r.Context(), pod.UID)
	if err == nil {
		running := status.Container(container)
		if running == nil || running.State != runtime.ContainerRunning {
			refuse(w, http.StatusNotFound, fmt.Sprintf("container %v does not run\n", container))
			return
		}
		file := filepath.Join(s.cfg.CheckpointDir, fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", name, namespace, container, time.Now().Format(time.RFC3339)))
		if err = os.MkdirAll(s.cfg.CheckpointDir, 0o700); err == nil {
			err = does.Checkpoint(r.Context(), running.ID, file, timeout)
		}
		if err == nil {
			s.json(w, map[string][]string{"items": {file}})
			return
		}
	}
	if errors.Is(err, runtime.ErrUnsupported) {
		refuse(w, http.StatusNotFound, "this node makes no checkpoints\n")
		return
	}
	s.log.Error("checkpoint", "pod", namespace+"/"+name, "container", container, "err", err)
	refuse(w, http.StatusInternalServerError, fmt.Sprintf("checkpointing of %v/%v/%v failed (%v)\n", namespace, name, container, err))
}

// checkpointTimeout is in seconds; none or 0 is the runtime's own.
func checkpointTimeout(given []string) (time.Duration, error) {
	if len(given) == 0 {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(given[0], 10, 32)
	if err != nil || seconds < 0 {
		return 0, fmt.Errorf("timeout %q is no number of seconds", given[0])
	}
	return time.Duration(seconds) * time.Second, nil
}
