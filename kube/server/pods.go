package server

import (
	"encoding/json"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/runtime"
)

// pods serves /pods: the desired pods.
func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	list := podList()
	for _, pod := range s.cfg.Pods.Pods() {
		list.Items = append(list.Items, *pod)
	}
	s.json(w, list)
}

// runningPods serves /runningpods: the pods of the runtime with a running container or
// sandbox. They have the images of the desired pod, if there is one.
func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	running, err := s.cfg.Runtime.Pods(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	desired := map[types.UID]*v1.Pod{}
	for _, pod := range s.cfg.Pods.Pods() {
		desired[pod.UID] = pod
	}
	list := podList()
	for _, p := range running {
		if object, runs := toPod(p, desired[p.UID]); runs {
			list.Items = append(list.Items, object)
		}
	}
	s.json(w, list)
}

// toPod converts a pod of the runtime; runs is false if nothing of it runs.
func toPod(p *runtime.Pod, desired *v1.Pod) (pod v1.Pod, runs bool) {
	pod.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
	for _, c := range p.Containers {
		if c.State != runtime.ContainerRunning {
			continue
		}
		runs = true
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c.Name, Image: imageOf(desired, c.Name)})
	}
	for _, sb := range p.Sandboxes {
		runs = runs || sb.State == runtime.SandboxReady
	}
	return pod, runs
}

func imageOf(pod *v1.Pod, container string) string {
	if pod == nil {
		return ""
	}
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			if c.Name == container {
				return c.Image
			}
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == container {
			return c.Image
		}
	}
	return ""
}

func podList() v1.PodList {
	return v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
}

// summary serves /stats/summary (rule st-3).
func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	// Not FormValue, which stores files of multipart forms, of any size, on disk.
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "failed to parse the options: "+err.Error()+"\n")
		return
	}
	var summary *statsapi.Summary
	var err error
	if only, _ := strconv.ParseBool(r.Form.Get("only_cpu_and_memory")); only {
		summary, err = s.cfg.Node.Stats.CPUAndMemory(r.Context())
	} else {
		summary, err = s.cfg.Node.Stats.Summary(r.Context(), false)
	}
	if summary == nil {
		s.fail(w, r, err)
		return
	}
	if err != nil {
		s.log.Warn("Failed to read part of the stats summary", "err", err)
	}
	s.json(w, summary)
}

// configz serves /configz.
func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	all := s.cfg.Node.Configz
	if all == nil {
		all = map[string]any{}
	}
	s.json(w, all)
}

// json responds with v. Write errors are ignored: they mean that the client has closed the
// connection.
func (s *Server) json(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.log.Error("Failed to encode response", "err", err)
		refuse(w, http.StatusInternalServerError, "Internal Error: failed to encode the response\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

// fail responds with 500.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Error("Failed to serve request", "method", r.Method, "path", r.URL.Path, "err", err)
	text := "Internal Error"
	if err != nil {
		text += ": " + err.Error()
	}
	refuse(w, http.StatusInternalServerError, text+"\n")
}

// hasContainer reports whether the spec of a pod has a container with this name, of any
// type.
func hasContainer(pod *v1.Pod, name string) bool {
	for _, list := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for _, c := range list {
			if c.Name == name {
				return true
			}
		}
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if c.Name == name {
			return true
		}
	}
	return false
}
