//go:build unix

package compare

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// observe runs the corpus on one kind of node.
func observe(ctx context.Context, t testing.TB, kind string, o options, say func(string, ...any)) (*snapshot, error) {
	batches, err := corpus(o.focus, o.skip)
	if err != nil {
		return nil, err
	}
	say("%s: starting containerd, an API server and the node", kind)
	w := newWorld(t, kind, o)
	if err := w.node.UntilReady(ctx, w.api, NodeName); err != nil {
		return nil, err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	seen, err := watchPods(watching, w.api)
	if err != nil {
		return nil, err
	}
	s := &snapshot{Kind: kind, Containerd: w.daemon.Version, Pods: map[string]*podRecord{}, Cgroups: map[string]map[string]string{}, Paths: w.paths()}
	for _, b := range batches {
		say("%s: %s, %d pods", kind, b.name, len(b.pods()))
		if err := w.run(ctx, b, seen, s, say); err != nil {
			return nil, fmt.Errorf("%s: %w", b.name, err)
		}
	}
	say("%s: waiting until all sandboxes are removed", kind)
	if err := w.untilRemoved(ctx); err != nil {
		say("%s: %v", kind, err)
	}
	if s.Node, err = w.api.CoreV1().Nodes().Get(ctx, NodeName, metav1.GetOptions{}); err != nil {
		return nil, err
	}
	s.Version = s.Node.Status.NodeInfo.KubeletVersion
	events, err := w.api.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for i := range events.Items {
		events.Items[i].ManagedFields = nil
	}
	s.Events = events.Items
	if n := w.proxy.Dropped(); n > 0 {
		return nil, fmt.Errorf("the proxy did not record %d calls", n)
	}
	s.Calls = w.proxy.Calls()
	return s, nil
}

// paths returns the names of what differs between runs.
func (w *world) paths() map[string]string {
	host := strings.TrimPrefix(w.daemon.Dir(), "/")
	return map[string]string{
		w.Path("root"): "<root>", w.Path("logs"): "<logs>", w.Path("manifests"): "<manifests>", w.Path("host"): "<host>",
		w.Dir: "<dir>", w.daemon.Dir(): "<containerd>", w.group(): "<cgroup>", host: "<containerd>",
	}
}

// run runs a batch: it creates the pods, waits until they are settled, records them, and
// deletes them.
func (w *world) run(ctx context.Context, b batch, seen *watcher, s *snapshot, say func(string, ...any)) error {
	names := map[string]string{} // of the API's pods, to those of the corpus
	for _, o := range b.objects {
		o = o.DeepCopy()
		if err := w.create(ctx, b, o); apierrors.IsInvalid(err) || apierrors.IsForbidden(err) {
			say("%s: create %s %s: %v", w.kind, o.GetKind(), o.GetName(), err) // the others are compared nevertheless
			continue
		} else if err != nil {
			return fmt.Errorf("create %s %s: %w", o.GetKind(), o.GetName(), err)
		}
		if o.GetKind() == "Pod" {
			names[w.apiName(b, o.GetName())] = o.GetName()
			s.Pods[o.GetName()] = &podRecord{Static: b.static, Containers: map[string]containerRecord{}}
		}
	}
	waiting, began := maps.Clone(names), time.Now()
	err := w.node.Until(ctx, "pods do not settle", settlingTime, func() error {
		for name, pod := range waiting {
			versions, ok := seen.settled(name, time.Now())
			if ok || versions == 0 && time.Since(began) > lab.Limit(patientTime) { // rejected by the API server
				s.Pods[pod].Settled = versions
				delete(waiting, name)
			}
		}
		if len(waiting) > 0 {
			return fmt.Errorf("%v", waiting)
		}
		return nil
	})
	if ctx.Err() != nil {
		return err
	} else if err != nil {
		say("%s: %v", w.kind, err)
	}
	for name, pod := range names {
		s.Pods[pod].History, _ = seen.history(name)
		if s.Pods[pod].Settled == 0 { // a static pod that was rejected may have no mirror pod
			s.Pods[pod].Settled = len(s.Pods[pod].History)
		}
	}
	if err := w.record(ctx, b, s); err != nil {
		return err
	}
	for _, o := range b.pods() {
		if err := w.remove(ctx, b, o); err != nil {
			return fmt.Errorf("delete %s: %w", o.GetName(), err)
		}
	}
	err = w.node.Until(ctx, "pods are not deleted", time.Minute, func() error {
		for name, pod := range names {
			history, deleted := seen.history(name)
			s.Pods[pod].History = history
			if !deleted {
				return errors.New(name)
			}
		}
		return nil
	})
	return err
}

// apiName returns the pod's name in the API server.
func (w *world) apiName(b batch, name string) string {
	if b.static {
		return name + "-" + NodeName
	}
	return name
}

func (w *world) create(ctx context.Context, b batch, o *unstructured.Unstructured) error {
	if b.static {
		data, err := yaml.Marshal(o.Object)
		if err != nil {
			return err
		}
		text := strings.ReplaceAll(string(data), hostDir, w.Path("host"))
		temporary := w.Path(o.GetName() + ".yaml")
		if err := os.WriteFile(temporary, []byte(text), 0o644); err != nil {
			return err
		}
		return os.Rename(temporary, w.manifest(o.GetName())) // it must not be read half written
	}
	if o.GetKind() == "Pod" {
		if err := unstructured.SetNestedField(o.Object, NodeName, "spec", "nodeName"); err != nil {
			return err
		}
	}
	_, err := w.objects.Resource(resourceOf(o)).Namespace(o.GetNamespace()).Create(ctx, o, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) && o.GetKind() == "ServiceAccount" {
		return nil
	}
	return err
}

func (w *world) manifest(pod string) string {
	return filepath.Join(w.Path("manifests"), pod+".yaml")
}

func (w *world) remove(ctx context.Context, b batch, o *unstructured.Unstructured) error {
	if b.static {
		return os.Remove(w.manifest(o.GetName()))
	}
	err := w.objects.Resource(resourceOf(o)).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func resourceOf(o runtime.Object) schema.GroupVersionResource {
	plural, _ := meta.UnsafeGuessKindToResource(o.GetObjectKind().GroupVersionKind())
	return plural
}

// record records cgroups, files and logs of the batch's settled pods.
func (w *world) record(ctx context.Context, b batch, s *snapshot) error {
	groups, err := readCgroups(w.group())
	if err != nil {
		return err
	}
	containers, err := runningContainers(ctx, w.daemon.Endpoint)
	if err != nil {
		return err
	}
	// The names of systemd's units separate cgroups by "-".
	separator := "-"
	if lab.CgroupDriver() != cgroupfs {
		separator = "_"
	}
	if cgroupdir.V2() {
		s.Cgroups[b.name] = ofNoPod(groups)
	}
	links := linksTo(containerLinks, w.Path("logs"))
	for _, o := range b.pods() {
		pod := s.Pods[o.GetName()]
		uid := uidOf(pod.History)
		if uid == "" {
			continue
		}
		pod.Cgroups = containing(groups, "pod"+strings.ReplaceAll(uid, "-", separator))
		pod.Files = describeTree(filepath.Join(w.Path("root"), "pods", uid), func(path string) bool {
			return strings.HasPrefix(path, "etc-hosts") || strings.HasPrefix(path, "volumes/") && !strings.HasSuffix(path, "token")
		})
		pod.Logs = containing(describeTree(w.Path("logs"), func(string) bool { return false }), uid)
		for name, target := range links {
			if strings.Contains(target, uid) {
				pod.Logs[filepath.Join(containerLinks, name)] = target
			}
		}
		for _, c := range containers {
			if c.uid == uid {
				pod.Containers[c.name] = containerRecord{Files: networkFiles(c.pid)}
			}
		}
	}
	return nil
}

// uidOf returns the UID that the node uses: that of a static pod is in an annotation.
func uidOf(history []v1.Pod) string {
	if len(history) == 0 {
		return ""
	}
	pod := &history[len(history)-1]
	if hash := pod.Annotations[configHash]; hash != "" {
		return hash
	}
	return string(pod.UID)
}

// configHash is the annotation with the UID of static pods.
const configHash = "kubernetes.io/config.hash"

func containing(all map[string]string, text string) map[string]string {
	found := map[string]string{}
	for key, value := range all {
		if strings.Contains(key, text) {
			found[key] = value
		}
	}
	return found
}

// ofNoPod returns the settings of the cgroups above those of pods.
func ofNoPod(groups map[string]string) map[string]string {
	found := maps.Clone(groups)
	maps.DeleteFunc(found, func(path, _ string) bool { return podGroup.MatchString(path) })
	return found
}

// podGroup matches the cgroups of pods.
var podGroup = regexp.MustCompile(`[/-]pod[0-9a-f]`)

// untilRemoved waits until the node agent has removed all sandboxes, which the kubelet does
// once per minute.
func (w *world) untilRemoved(ctx context.Context) error {
	return w.node.Until(ctx, "sandboxes are not removed", 150*time.Second, func() error {
		l, err := lab.List(ctx, w.daemon.Endpoint)
		if err != nil {
			return err
		}
		if n := len(l.Sandboxes) + len(l.Containers); n > 0 {
			return fmt.Errorf("%d sandboxes, %d containers", len(l.Sandboxes), len(l.Containers))
		}
		return nil
	})
}
