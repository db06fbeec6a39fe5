package server

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/runtime"
)

// checkpoint serves /checkpoint/{namespace}/{pod}/{container} (rule sv-11).
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	checkpointer, ok := compose.As[runtime.Checkpointer](s.cfg.Runtime)
	if !ok || s.cfg.Containers.CheckpointDir == "" {
		refuse(w, http.StatusNotFound, "checkpoints are not supported by this node\n")
		return
	}
	namespace, name, container := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, found := s.cfg.Pods.Pod(namespace, name)
	if !found {
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
			refuse(w, http.StatusNotFound, fmt.Sprintf("container %v is not running\n", container))
			return
		}
		file := filepath.Join(s.cfg.Containers.CheckpointDir, fmt.Sprintf("checkpoint-%s_%s-%s-%s.tar", name, namespace, container, time.Now().Format(time.RFC3339)))
		if err = os.MkdirAll(s.cfg.Containers.CheckpointDir, 0o700); err == nil {
			err = checkpointer.Checkpoint(r.Context(), running.ID, file, timeout)
		}
		if err == nil {
			s.json(w, map[string][]string{"items": {file}})
			return
		}
	}
	if errors.Is(err, runtime.ErrUnsupported) {
		refuse(w, http.StatusNotFound, "checkpoints are not supported by this node\n")
		return
	}
	s.log.Error("Failed to checkpoint container", "pod", namespace+"/"+name, "containerName", container, "err", err)
	refuse(w, http.StatusInternalServerError, fmt.Sprintf("checkpointing of %v/%v/%v failed (%v)\n", namespace, name, container, err))
}

// checkpointTimeout returns the parameter timeout, which is in seconds. Zero or none: the
// default of the runtime.
func checkpointTimeout(given []string) (time.Duration, error) {
	if len(given) == 0 {
		return 0, nil
	}
	seconds, err := strconv.ParseInt(given[0], 10, 32)
	if err != nil || seconds < 0 {
		return 0, fmt.Errorf("invalid timeout %q: want a number of seconds", given[0])
	}
	return time.Duration(seconds) * time.Second, nil
}
