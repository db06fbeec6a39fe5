package server

import (
	"encoding/json"
	"net/http"
	"strconv"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubeparts/kubeparts/internal/podspec"
	"github.com/kubeparts/kubeparts/runtime"
)

// pods answers /pods: those that the node knows of.
func (s *Server) pods(w http.ResponseWriter, _ *http.Request) {
	list := podList()
	for _, pod := range s.cfg.Pods.Pods() {
		list.Items = append(list.Items, *pod)
	}
	s.json(w, list)
}

// runningPods answers /runningpods: those of which the runtime runs something, as far
// as it knows them. Images are those of the wanted pod, if it is still known.
func (s *Server) runningPods(w http.ResponseWriter, r *http.Request) {
	running, err := s.cfg.Runtime.Pods(r.Context())
	if err != nil {
		s.fail(w, r, err)
		return
	}
	wanted := map[types.UID]*v1.Pod{}
	for _, pod := range s.cfg.Pods.Pods() {
		wanted[pod.UID] = pod
	}
	list := podList()
	for _, p := range running {
		if shown, runs := asPod(p, wanted[p.UID]); runs {
			list.Items = append(list.Items, shown)
		}
	}
	s.json(w, list)
}

// asPod makes an API object of what a list of the runtime shows.
func asPod(p *runtime.Pod, wanted *v1.Pod) (pod v1.Pod, runs bool) {
	pod.ObjectMeta = metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace, UID: p.UID}
	for _, c := range p.Containers {
		if c.State != runtime.ContainerRunning {
			continue
		}
		runs = true
		pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: c.Name, Image: imageOf(wanted, c.Name)})
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
	if c := podspec.Container(pod, container); c != nil {
		return c.Image
	}
	return ""
}

func podList() v1.PodList {
	return v1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []v1.Pod{}}
}

// summary answers /stats/summary (st-3).
func (s *Server) summary(w http.ResponseWriter, r *http.Request) {
	// Not FormValue: it keeps files that come with a form, of any size, on the disk.
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		refuse(w, http.StatusBadRequest, "the options can't be read: "+err.Error()+"\n")
		return
	}
	only, _ := strconv.ParseBool(r.Form.Get("only_cpu_and_memory"))
	summary, err := s.cfg.Summary(r.Context(), only)
	if summary == nil {
		s.fail(w, r, err)
		return
	}
	if err != nil {
		s.log.Warn("some stats are missing", "err", err)
	}
	s.json(w, summary)
}

// configz answers /configz.
func (s *Server) configz(w http.ResponseWriter, _ *http.Request) {
	all := s.cfg.Configz
	if all == nil {
		all = map[string]any{}
	}
	s.json(w, all)
}

// json writes an answer; that the client has gone is nobody's business.
func (s *Server) json(w http.ResponseWriter, v any) {
	data, err := json.Marshal(v)
	if err != nil {
		s.log.Error("an answer can't be written", "err", err)
		refuse(w, http.StatusInternalServerError, "Internal Error: the answer can't be written\n")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(data)
}

// fail answers that something that was asked has failed.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	s.log.Error("a request has failed", "method", r.Method, "path", r.URL.Path, "err", err)
	text := "Internal Error"
	if err != nil {
		text += ": " + err.Error()
	}
	refuse(w, http.StatusInternalServerError, text+"\n")
}

// hasContainer reports whether a pod's spec has a container, of any kind.
func hasContainer(pod *v1.Pod, name string) bool {
	return podspec.Container(pod, name) != nil
}
