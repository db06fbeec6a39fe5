// Package objecttest has objects in memory, for tests of volumes that are made from
// them.
package objecttest

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objects are a volume.Objects. They may be changed at any time.
type Objects struct {
	mu  sync.Mutex
	all map[string]metav1.Object
	err error
}

// New returns objects, to begin with.
func New(all ...metav1.Object) *Objects {
	o := &Objects{all: map[string]metav1.Object{}}
	for _, object := range all {
		o.Put(object)
	}
	return o
}

func key(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

func kindOf(object metav1.Object) string {
	switch object.(type) {
	case *v1.ConfigMap:
		return "ConfigMap"
	case *v1.Secret:
		return "Secret"
	}
	return fmt.Sprintf("%T", object)
}

// Put adds or replaces an object.
func (o *Objects) Put(object metav1.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all[key(kindOf(object), object.GetNamespace(), object.GetName())] = object
}

// Fail makes all calls fail; nil ends that.
func (o *Objects) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

type notFound struct{ kind, name string }

func (e notFound) Error() string {
	return fmt.Sprintf("%s %q not found", strings.ToLower(e.kind), e.name)
}
func (e notFound) Is(target error) bool { return target == fs.ErrNotExist }

func get[T metav1.Object](o *Objects, kind, namespace, name string) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	if o.err != nil {
		return none, o.err
	}
	object, ok := o.all[key(kind, namespace, name)].(T)
	if !ok {
		return none, notFound{kind, name}
	}
	return object, nil
}

// ConfigMap implements volume.Objects.
func (o *Objects) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return get[*v1.ConfigMap](o, "ConfigMap", namespace, name)
}

// Secret implements volume.Objects.
func (o *Objects) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	return get[*v1.Secret](o, "Secret", namespace, name)
}

// ConfigMap returns a ConfigMap.
func ConfigMap(namespace, name string, data map[string]string) *v1.ConfigMap {
	return &v1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

// Secret returns a Secret.
func Secret(namespace, name string, data map[string]string) *v1.Secret {
	s := &v1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{}}
	for k, v := range data {
		s.Data[k] = []byte(v)
	}
	return s
}
