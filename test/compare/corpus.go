//go:build unix

package compare

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
)

// corpusFiles are the pods: in static as manifests, in api as objects of an API server, together
// with the objects that they refer to. $HOSTDIR is replaced by a
// directory of the run.
//
//go:embed corpus
var corpusFiles embed.FS

// hostDir is the variable of the corpus.
const hostDir = "$HOSTDIR"

// A batch contains the pods of a file, which run at the same time.
type batch struct {
	name    string // "probes"
	static  bool
	objects []*unstructured.Unstructured
}

// pods returns the objects that are pods.
func (b batch) pods() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(b.objects), func(o *unstructured.Unstructured) bool { return o.GetKind() != "Pod" })
}

// corpus returns the batches whose names match a pattern, without the objects whose names match another one, which
// may be empty.
func corpus(focus, skip string) ([]batch, error) {
	pattern, err := regexp.Compile(focus)
	if err != nil {
		return nil, fmt.Errorf("--focus: %w", err)
	}
	skipped, err := regexp.Compile(skip)
	if err != nil {
		return nil, fmt.Errorf("--skip: %w", err)
	}
	var batches []batch
	for _, dir := range []string{"static", "api"} {
		entries, err := corpusFiles.ReadDir("corpus/" + dir)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			name := strings.TrimSuffix(entry.Name(), ".yaml")
			if !pattern.MatchString(name) {
				continue
			}
			data, err := corpusFiles.ReadFile(path.Join("corpus", dir, entry.Name()))
			if err != nil {
				return nil, err
			}
			objects, err := parseObjects(data)
			if err != nil {
				return nil, fmt.Errorf("corpus/%s/%s: %w", dir, entry.Name(), err)
			}
			if skip != "" {
				objects = slices.DeleteFunc(objects, func(o *unstructured.Unstructured) bool { return skipped.MatchString(o.GetName()) })
			}
			batches = append(batches, batch{name, dir == "static", objects})
		}
	}
	if len(batches) == 0 {
		return nil, fmt.Errorf("no file of the corpus matches %q", focus)
	}
	return batches, nil
}

// parseObjects parses a file of the corpus. Objects without a namespace are in default.
func parseObjects(data []byte) (objects []*unstructured.Unstructured, err error) {
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(data), 4096)
	for {
		o := new(unstructured.Unstructured)
		if err := decoder.Decode(&o.Object); errors.Is(err, io.EOF) {
			return objects, nil
		} else if err != nil {
			return nil, err
		}
		if o.GetKind() == "" || o.GetName() == "" {
			return nil, fmt.Errorf("object %d has no kind or name", len(objects))
		}
		if o.GetNamespace() == "" {
			o.SetNamespace("default")
		}
		objects = append(objects, o)
	}
}
