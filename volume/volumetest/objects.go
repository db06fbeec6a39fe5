package volumetest

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Objects is a payload.Objects in memory. The zero value is empty. Safe for concurrent use.
type Objects struct {
	// mu guards the fields below.
	mu  sync.Mutex
	all map[string]metav1.Object
	err error
}

// NewObjects returns an Objects with ConfigMaps and Secrets.
func NewObjects(all ...metav1.Object) *Objects {
	o := new(Objects)
	for _, object := range all {
		o.Put(object)
	}
	return o
}

func objectKey(kind, namespace, name string) string { return kind + " " + namespace + "/" + name }

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
	if o.all == nil {
		o.all = map[string]metav1.Object{}
	}
	o.all[objectKey(kindOf(object), object.GetNamespace(), object.GetName())] = object
}

// Fail makes all calls return err; nil stops this.
func (o *Objects) Fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = err
}

type noObject struct{ kind, name string }

func (e noObject) Error() string {
	return fmt.Sprintf("%s %q not found", strings.ToLower(e.kind), e.name)
}
func (e noObject) Is(target error) bool { return target == fs.ErrNotExist }

func getObject[T metav1.Object](o *Objects, kind, namespace, name string) (T, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var none T
	if o.err != nil {
		return none, o.err
	}
	object, ok := o.all[objectKey(kind, namespace, name)].(T)
	if !ok {
		return none, noObject{kind, name}
	}
	return object, nil
}

// ConfigMap implements payload.Objects.
func (o *Objects) ConfigMap(_ context.Context, namespace, name string) (*v1.ConfigMap, error) {
	return getObject[*v1.ConfigMap](o, "ConfigMap", namespace, name)
}

// Secret implements payload.Objects.
func (o *Objects) Secret(_ context.Context, namespace, name string) (*v1.Secret, error) {
	return getObject[*v1.Secret](o, "Secret", namespace, name)
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
