package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// maxFile is the largest size of a file, in bytes. A complete KubeletConfiguration has a
// few kilobytes.
const maxFile = 1 << 20

// Read returns the KubeletConfiguration in file, merged with the files *.conf of the
// directory dropIns, with defaults. Both are YAML or JSON, and either may be empty; the
// result is then the default configuration. The warnings name the fields and feature
// gates that have no effect.
//
// It returns an error that names the file, and the field if there is one, if a file
// cannot be read, has unknown or duplicate fields, or sets a field that is Refused.
func Read(file, dropIns string) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	merged := map[string]any{}
	if file != "" {
		if merged, err = readObject(file); err != nil {
			return nil, nil, err
		}
	}
	if dropIns != "" {
		if err := mergeDir(merged, dropIns); err != nil {
			return nil, nil, err
		}
	}
	if cfg, warnings, err = fromObject(merged); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", cmp.Or(file, dropIns), err)
	}
	return cfg, warnings, nil
}

// Decode is Read for a configuration in memory.
func Decode(text []byte) (cfg *kubeletconfig.KubeletConfiguration, warnings []string, err error) {
	object, err := decodeObject(text)
	if err != nil {
		return nil, nil, err
	}
	return fromObject(object)
}

// Default sets the fields of cfg that have their zero value to their defaults.
func Default(cfg *kubeletconfig.KubeletConfiguration) {
	for f := range fields {
		if f.def == "" {
			continue
		}
		if value, ok := f.value(cfg, true); ok && value.IsZero() {
			_ = yaml.Unmarshal([]byte(f.def), value.Addr().Interface()) // each default is tested
		}
	}
}

func fromObject(object map[string]any) (*kubeletconfig.KubeletConfiguration, []string, error) {
	cfg := new(kubeletconfig.KubeletConfiguration)
	text, err := json.Marshal(object)
	if err == nil {
		err = json.Unmarshal(text, cfg)
	}
	if err != nil {
		return nil, nil, err
	}
	warnings, err := check(cfg, object)
	if err != nil {
		return nil, nil, err
	}
	Default(cfg)
	return cfg, warnings, nil
}

// readObject reads one file, which must be regular or a link to a regular file: opening
// a FIFO would block.
func readObject(path string) (map[string]any, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err == nil && len(text) > maxFile {
		err = fmt.Errorf("larger than %d bytes", maxFile)
	}
	var object map[string]any
	if err == nil {
		object, err = decodeObject(text)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return object, nil
}

// decodeObject returns the fields that text sets, after it has checked that they are
// fields of a KubeletConfiguration.
func decodeObject(text []byte) (map[string]any, error) {
	object, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return nil, err
	}
	var cfg kubeletconfig.KubeletConfiguration
	strict, err := kjson.UnmarshalStrict(object, &cfg)
	if err := errors.Join(append(strict, err)...); err != nil {
		return nil, err
	}
	if cfg.Kind != "KubeletConfiguration" || cfg.APIVersion != kubeletconfig.SchemeGroupVersion.String() {
		return nil, fmt.Errorf("apiVersion %q, kind %q: want %s, KubeletConfiguration", cfg.APIVersion, cfg.Kind, kubeletconfig.SchemeGroupVersion)
	}
	fields := map[string]any{}
	return fields, kjson.UnmarshalCaseSensitivePreserveInts(object, &fields)
}

// mergeDir merges the files *.conf of a directory into a configuration, in the order of
// their names.
func mergeDir(into map[string]any, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".conf" {
			continue
		}
		object, err := readObject(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		merge(into, object)
	}
	return nil
}

// merge is a JSON merge patch (RFC 7386).
func merge(into, patch map[string]any) {
	for key, value := range patch {
		below, isObject := value.(map[string]any)
		old, wasObject := into[key].(map[string]any)
		switch {
		case value == nil:
			delete(into, key)
		case isObject && wasObject:
			merge(old, below)
		default:
			into[key] = value
		}
	}
}
