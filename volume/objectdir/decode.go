package objectdir

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	kjson "sigs.k8s.io/json"

	"github.com/kubeparts/kubeparts/internal/yamljson"
)

// maxData is the API server's limit of the size of the values of one object in bytes.
const maxData = 1 << 20

// marker separates the documents of a file.
var marker = regexp.MustCompile(`(?m)^---([ \t].*)?\r?$`)

// Decode decodes the ConfigMaps and Secrets in data, YAML or JSON. Unknown fields, other kinds, and
// invalid names and keys are errors. The stringData of a Secret is merged into its Data. The default
// namespace is "default". Errors do not contain values.
//
// A document has at most 1.5 MiB; all documents together have at most 100,000 values.
func Decode(data []byte) (configMaps []*v1.ConfigMap, secrets []*v1.Secret, err error) {
	if !utf8.Valid(data) {
		return nil, nil, errors.New("objectdir: is not UTF-8 text")
	}
	documents := marker.Split(string(bytes.TrimPrefix(data, []byte("\ufeff"))), -1)
	values := 0
	for i, document := range documents {
		if strings.TrimSpace(document) == "" {
			continue
		}
		cm, secret, err := decode([]byte(document), &values)
		if err != nil && len(documents) > 1 {
			err = fmt.Errorf("document %d: %w", i+1, err)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("objectdir: %w", err)
		}
		if cm != nil {
			configMaps = append(configMaps, cm)
		}
		if secret != nil {
			secrets = append(secrets, secret)
		}
	}
	if len(configMaps)+len(secrets) == 0 {
		return nil, nil, errors.New("objectdir: no object in file")
	}
	return configMaps, secrets, nil
}

// decode decodes one document, which may be empty, and adds the number of its values to values.
func decode(document []byte, values *int) (*v1.ConfigMap, *v1.Secret, error) {
	data, err := yamljson.Convert(string(document))
	if err != nil {
		return nil, nil, hideValues(err)
	}
	if *values += yamljson.CountJSON(data); *values > yamljson.MaxValues {
		return nil, nil, fmt.Errorf("the documents together have more than %d values", yamljson.MaxValues)
	}
	if bytes.Equal(bytes.TrimSpace(data), []byte("null")) {
		return nil, nil, nil // comments only
	}
	var kind metav1.TypeMeta
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &kind); err != nil {
		return nil, nil, errors.New("not an object")
	}
	switch {
	case kind.APIVersion == "v1" && kind.Kind == "ConfigMap":
		cm := new(v1.ConfigMap)
		if err := strict(data, cm); err != nil {
			return nil, nil, err
		}
		return cm, nil, complete(&cm.ObjectMeta, cm.Data, cm.BinaryData)
	case kind.APIVersion == "v1" && kind.Kind == "Secret":
		secret := new(v1.Secret)
		if err := strict(data, secret); err != nil {
			return nil, nil, err
		}
		if secret.Data == nil {
			secret.Data = map[string][]byte{}
		}
		for key, value := range secret.StringData {
			secret.Data[key] = []byte(value)
		}
		secret.StringData = nil
		return nil, secret, complete(&secret.ObjectMeta, nil, secret.Data)
	}
	return nil, nil, fmt.Errorf("apiVersion %q, kind %q: only v1 ConfigMaps and Secrets are supported", kind.APIVersion, kind.Kind)
}

func strict(data []byte, into any) error {
	problems, err := kjson.UnmarshalStrict(data, into)
	if err != nil {
		return hideValues(err)
	}
	return errors.Join(problems...)
}

// quoted matches the part of a value that parsers include in errors.
var quoted = regexp.MustCompile("(?s)[\"'`].*[\"'`]")

// hideValues removes values, which may be secret, from an error.
func hideValues(err error) error {
	return errors.New(quoted.ReplaceAllString(err.Error(), `"…"`))
}

// complete sets the default namespace and validates the object as the API server does.
func complete(meta *metav1.ObjectMeta, text map[string]string, binary map[string][]byte) error {
	if meta.Namespace == "" {
		meta.Namespace = metav1.NamespaceDefault
	}
	if err := checkName(meta.Namespace, meta.Name); err != nil {
		return err
	}
	size := 0
	for _, key := range slices.Sorted(maps.Keys(text)) {
		if _, twice := binary[key]; twice {
			return fmt.Errorf("data[%s]: is in binaryData as well", key)
		}
		size += len(text[key])
	}
	for _, value := range binary {
		size += len(value)
	}
	for _, key := range slices.Sorted(keys(text, binary)) {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			return fmt.Errorf("data[%s]: Invalid value: %q: %s", shorten(key), shorten(key), strings.Join(problems, "; "))
		}
	}
	if size > maxData {
		return fmt.Errorf("data: Too long: may not be more than %d bytes", maxData)
	}
	return nil
}

func keys(text map[string]string, binary map[string][]byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for key := range text {
			if !yield(key) {
				return
			}
		}
		for key := range binary {
			if !yield(key) {
				return
			}
		}
	}
}

func checkName(namespace, name string) error {
	if problems := validation.IsDNS1123Label(namespace); len(problems) > 0 {
		return fmt.Errorf("metadata.namespace: Invalid value: %q: %s", shorten(namespace), strings.Join(problems, "; "))
	}
	if name == "" {
		return errors.New("metadata.name: Required value")
	}
	if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
		return fmt.Errorf("metadata.name: Invalid value: %q: %s", shorten(name), strings.Join(problems, "; "))
	}
	return nil
}

func shorten(s string) string {
	if len(s) > 80 {
		return strings.ToValidUTF8(s[:80], "") + "…"
	}
	return s
}

// split separates UTF-8 text, which environment variables can refer to, from binary data.
func split(data map[string][]byte) (text map[string]string, binary map[string][]byte) {
	for key, value := range data {
		if utf8.Valid(value) {
			if text == nil {
				text = map[string]string{}
			}
			text[key] = string(value)
			continue
		}
		if binary == nil {
			binary = map[string][]byte{}
		}
		binary[key] = value
	}
	return text, binary
}
