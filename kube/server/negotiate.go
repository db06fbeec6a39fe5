package server

import (
	"mime"
	"slices"
	"strconv"
	"strings"
)

// Media types of /statusz and /flagz.
const (
	jsonType = "application/json"
	yamlType = "application/yaml"
	textType = "text/plain"
)

// A zpageFormat is the format of a response: text, or an object of an API version.
type zpageFormat struct {
	mediaType string
	version   string // empty: text
}

// negotiate returns the format of an object that a client prefers, by its Accept header. It
// reports false if there is none. A structured format must be requested with the group, a
// version and the kind of the object: application/json;g=config.k8s.io;v=v1beta1;as=Statusz.
// An empty header, and */*, accept text.
func negotiate(accept, kind string) (f zpageFormat, ok bool) {
	if strings.TrimSpace(accept) == "" {
		return zpageFormat{mediaType: textType}, true
	}
	best := 0.0
	for part := range strings.SplitSeq(accept, ",") {
		mediaType, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		quality := 1.0
		if q, given := params["q"]; given {
			if quality, err = strconv.ParseFloat(q, 64); err != nil {
				continue
			}
		}
		if candidate, fits := formatOf(mediaType, params, kind); fits && quality > best {
			f, best = candidate, quality
		}
	}
	return f, best > 0
}

// formatOf returns the format that one element of an Accept header names.
func formatOf(mediaType string, params map[string]string, kind string) (f zpageFormat, ok bool) {
	structured := params["as"] != "" || params["g"] != "" || params["v"] != ""
	switch mediaType {
	case "*/*", "application/*":
		f.mediaType = jsonType
	case jsonType, yamlType:
		f.mediaType = mediaType
	}
	if !structured {
		return zpageFormat{mediaType: textType}, slices.Contains([]string{"*/*", "text/*", textType}, mediaType)
	}
	f.version = params["v"]
	known := slices.Contains([]string{"v1alpha1", "v1beta1"}, f.version)
	return f, f.mediaType != "" && known && params["as"] == kind && params["g"] == zpageGroup
}
