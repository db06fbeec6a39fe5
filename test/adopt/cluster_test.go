//go:build linux

package adopt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
)

// A member is a node that belongs to a cluster. Its pods have the names of their API
// objects: those of static pods have the node's name added.
type member struct {
	*node
	api      kubernetes.Interface
	objects  dynamic.Interface
	observed *observer
}

// newMember returns a node without a kubelet, on a new containerd, and an API server.
func newMember(t *testing.T) *member {
	t.Helper()
	lab.Need(t, "kubernetes")
	m := &member{node: bareNode(t)}
	registry := lab.NewRegistry(t)
	image, err := lab.BusyboxImage()
	require.NoError(t, err)
	image.Files = append(image.Files, lab.File{Path: "tool", Mode: 0o644})
	registry.Push(image, "tool:1")
	m.daemon = lab.Containerd(t, lab.ContainerdConfig{Mirror: "http://" + registry.Host, MirrorHosts: []string{"images.test"}})
	control := lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true})
	api, config, err := labenv.NewClient(control.Kubeconfig)
	require.NoError(t, err)
	m.api = api
	m.objects, err = dynamic.NewForConfig(config)
	require.NoError(t, err)
	m.configure(m.daemon.Endpoint, "maxPods: 250", "makeIPTablesUtilChains: false", "nodeStatusUpdateFrequency: 10s", "nodeStatusReportFrequency: 10s")
	address, err := labenv.OwnAddress()
	require.NoError(t, err)
	m.flags = []string{"--kubeconfig=" + control.NodeKubeconfig("node"), "--node-ip=" + address}
	m.observed = observe(t, m.api)
	m.createAll(object("v1", "ServiceAccount", "default"))
	return m
}

func object(version, kind, name string) *unstructured.Unstructured {
	o := new(unstructured.Unstructured)
	o.SetAPIVersion(version)
	o.SetKind(kind)
	o.SetName(name)
	o.SetNamespace(metav1.NamespaceDefault)
	return o
}

// createAll creates objects, pods on this node, and returns the names of the pods. Pods
// that the API server does not admit are left out.
func (m *member) createAll(objects ...*unstructured.Unstructured) (pods []string) {
	m.t.Helper()
	for _, o := range objects {
		if o.GetKind() == "Pod" {
			require.NoError(m.t, unstructured.SetNestedField(o.Object, "node", "spec", "nodeName"))
		}
		plural, _ := meta.UnsafeGuessKindToResource(o.GroupVersionKind())
		_, err := m.objects.Resource(plural).Namespace(o.GetNamespace()).Create(m.t.Context(), o, metav1.CreateOptions{})
		switch {
		case o.GetKind() == "Pod" && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)):
			m.t.Logf("not admitted: %s: %v", o.GetName(), err)
		case !apierrors.IsAlreadyExists(err):
			require.NoError(m.t, err, "create %s %s", o.GetKind(), o.GetName())
			if o.GetKind() == "Pod" {
				pods = append(pods, o.GetName())
			}
		}
	}
	return pods
}

// createManifest creates the object of a manifest.
func (m *member) createManifest(text string) {
	m.t.Helper()
	objects, err := parseObjects([]byte(m.replaced(text)))
	require.NoError(m.t, err)
	require.Len(m.t, m.createAll(objects...), 1)
}

// createCorpus creates the objects of the corpus of test/compare but those to skip, also the
// static pods there, and returns the names of the pods. KUBEPARTS_ADOPT_CORPUS is a pattern
// of file names, such as "probes|volumes".
func (m *member) createCorpus(skip func(name string) bool) (pods []string) {
	m.t.Helper()
	focus, err := regexp.Compile(os.Getenv("KUBEPARTS_ADOPT_CORPUS"))
	require.NoError(m.t, err)
	paths, err := filepath.Glob("../compare/corpus/*/*.yaml")
	require.NoError(m.t, err)
	require.NotEmpty(m.t, paths)
	for _, path := range paths {
		if !focus.MatchString(filepath.Base(path)) {
			continue
		}
		text, err := os.ReadFile(path)
		require.NoError(m.t, err)
		objects, err := parseObjects([]byte(strings.ReplaceAll(string(text), "$HOSTDIR", filepath.Join(m.dir, "control"))))
		require.NoError(m.t, err, path)
		objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return skip(o.GetName()) })
		pods = append(pods, m.createAll(objects...)...)
	}
	return pods
}

// parseObjects parses the documents of a file.
func parseObjects(data []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := new(unstructured.Unstructured)
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		o.SetNamespace(cmp.Or(o.GetNamespace(), metav1.NamespaceDefault))
		objects = append(objects, o)
	}
}

// deletePod deletes a pod of the API server; a negative grace period means its own.
func (m *member) deletePod(name string, grace int64) {
	m.t.Helper()
	options := metav1.DeleteOptions{}
	if grace >= 0 {
		options.GracePeriodSeconds = &grace
	}
	require.NoError(m.t, m.api.CoreV1().Pods(metav1.NamespaceDefault).Delete(m.t.Context(), name, options))
}

// untilReady waits until the node is ready according to a program.
func (m *member) untilReady() {
	m.t.Helper()
	m.until("the node is ready", func() error {
		node, err := m.api.CoreV1().Nodes().Get(m.t.Context(), "node", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(node.Status.Conditions, func(c v1.NodeCondition) bool { return c.Type == v1.NodeReady && c.Status == v1.ConditionTrue }) {
			return errors.New("it is not")
		}
		return nil
	})
}

// events returns "pod: reason: message" of the events of pods.
func (m *member) events(ctx context.Context) (lines []string) {
	m.t.Helper()
	list, err := m.api.CoreV1().Events("").List(ctx, metav1.ListOptions{})
	require.NoError(m.t, err)
	for _, e := range list.Items {
		if e.InvolvedObject.Kind == "Pod" {
			lines = append(lines, e.InvolvedObject.Name+": "+e.Reason+": "+e.Message)
		}
	}
	return lines
}
