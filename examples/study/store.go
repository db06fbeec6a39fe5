package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1 "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/sim/study"
)

// A store is where parts are written and read: a directory, ConfigMaps, or standard output and
// input if both are empty.
type store struct {
	dir        string
	configMaps string // prefix of their names, and value of their label

	namespace, kubeconfig string
}

const (
	// label is the label of the ConfigMaps of a study.
	label = "study.kubeparts.io/name"

	// key is the key of the part in a ConfigMap.
	key = "part.json"

	// maxConfigMap is the maximum size of the data of a ConfigMap.
	maxConfigMap = 1 << 20
)

// write stores a part. A part of the same share is replaced: the pod of a share may be started
// again.
func (s *store) write(ctx context.Context, p *study.Part, out io.Writer) error {
	if s.dir == "" && s.configMaps == "" {
		return p.Write(out)
	}
	var text bytes.Buffer
	if err := p.Write(&text); err != nil {
		return err
	}
	if s.dir != "" {
		path := filepath.Join(s.dir, fmt.Sprintf("part-%d.json", p.Share))
		if err := os.WriteFile(path+".tmp", text.Bytes(), 0o644); err != nil {
			return err
		}
		return os.Rename(path+".tmp", path) // a reader gets all or nothing
	}
	name := fmt.Sprintf("%s-%d", s.configMaps, p.Share)
	if text.Len() > maxConfigMap {
		return fmt.Errorf("%v has %d bytes and ConfigMap %s at most %d: divide the study into more shares", p, text.Len(), name, maxConfigMap)
	}
	clients, namespace, err := s.connect()
	if err != nil {
		return err
	}
	c := v1.ConfigMap(name, namespace).WithLabels(map[string]string{label: s.configMaps}).WithData(map[string]string{key: text.String()})
	_, err = clients.CoreV1().ConfigMaps(namespace).Apply(ctx, c, metav1.ApplyOptions{FieldManager: "study", Force: true})
	return err
}

// read returns all parts.
func (s *store) read(ctx context.Context, in io.Reader) (parts []*study.Part, err error) {
	switch {
	case s.dir != "":
		paths, err := filepath.Glob(filepath.Join(s.dir, "part-*.json"))
		if err != nil {
			return nil, err
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				return nil, err
			}
			if parts, err = appendParts(parts, path, string(text)); err != nil {
				return nil, err
			}
		}
		return parts, nil
	case s.configMaps != "":
		clients, namespace, err := s.connect()
		if err != nil {
			return nil, err
		}
		list, err := clients.CoreV1().ConfigMaps(namespace).List(ctx, metav1.ListOptions{LabelSelector: label + "=" + s.configMaps})
		if err != nil {
			return nil, err
		}
		for _, c := range list.Items {
			if parts, err = appendParts(parts, "ConfigMap "+c.Name, c.Data[key]); err != nil {
				return nil, err
			}
		}
		return parts, nil
	}
	return study.ReadParts(in)
}

// appendParts appends the parts of a text; an error names its origin.
func appendParts(parts []*study.Part, origin, text string) ([]*study.Part, error) {
	more, err := study.ReadParts(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", origin, err)
	}
	return slices.Concat(parts, more), nil
}

// connect returns a client and the namespace of the ConfigMaps.
func (s *store) connect() (kubernetes.Interface, string, error) {
	rules := &clientcmd.ClientConfigLoadingRules{ExplicitPath: s.kubeconfig}
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{})
	config, err := loader.ClientConfig() // of the service account without a kubeconfig
	if err != nil {
		return nil, "", err
	}
	namespace := s.namespace
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, "", err
		}
	}
	clients, err := kubernetes.NewForConfig(config)
	return clients, namespace, err
}
