package server

import (
	"net/http"
	"strings"

	"github.com/kubeparts/kubeparts/kube/auth"
)

// methodVerbs are the authorization verbs of HTTP methods (rule sv-14). The response to any other
// method is 405.
var methodVerbs = map[string]string{
	http.MethodGet:    "get",
	http.MethodHead:   "get",
	http.MethodPost:   "create",
	http.MethodPut:    "update",
	http.MethodPatch:  "patch",
	http.MethodDelete: "delete",
}

// streamVerbs are the verbs of routes that run something in a pod: also a GET, which opens
// a WebSocket, must not be allowed by permission to read (rule sv-19).
var streamVerbs = map[string]string{
	http.MethodGet:  "create",
	http.MethodPost: "create",
}

// An area is the authorization of all paths with the same first segment: the verbs, and the
// subresources of the node, of which one must be allowed.
type area struct {
	verbs        map[string]string
	subresources []string // the most specific first (rule sv-16)
	debugging    bool     // disabled without Debugging.Handlers
}

// areas are the areas by first path segment (rules sv-15, sv-16, sv-18).
var areas = map[string]area{
	"stats":      {verbs: methodVerbs, subresources: []string{"stats"}},
	"metrics":    {verbs: methodVerbs, subresources: []string{"metrics"}},
	"checkpoint": {verbs: methodVerbs, subresources: []string{"checkpoint"}},
	"statusz":    {verbs: methodVerbs, subresources: []string{"statusz"}},
	"flagz":      {verbs: methodVerbs, subresources: []string{"configz"}},
	"pods":       {verbs: methodVerbs, subresources: []string{"pods", "proxy"}},
	"healthz":    {verbs: methodVerbs, subresources: []string{"healthz", "proxy"}},
	"configz":    {verbs: methodVerbs, subresources: []string{"configz", "proxy"}},

	"logs":          {verbs: methodVerbs, subresources: []string{"log"}, debugging: true},
	"runningpods":   {verbs: methodVerbs, subresources: []string{"pods", "proxy"}, debugging: true},
	"containerLogs": {verbs: methodVerbs, subresources: []string{"proxy"}, debugging: true},
	"debug":         {verbs: methodVerbs, subresources: []string{"proxy"}, debugging: true},
	"exec":          {verbs: streamVerbs, subresources: []string{"proxy"}, debugging: true},
	"attach":        {verbs: streamVerbs, subresources: []string{"proxy"}, debugging: true},
	"portForward":   {verbs: streamVerbs, subresources: []string{"proxy"}, debugging: true},
	"run":           {verbs: streamVerbs, subresources: []string{"proxy"}, debugging: true},
}

// otherArea is the area of all other paths.
var otherArea = area{verbs: methodVerbs, subresources: []string{"proxy"}}

func areaOf(path string) area {
	if a, ok := areas[firstSegment(path)]; ok {
		return a
	}
	return otherArea
}

// firstSegment returns the first segment of a path. It is compared as a whole: /statsx is
// not below /stats (rule sv-18).
func firstSegment(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return first
}

// Attributes returns the authorization attributes of a request to a node's API: the request
// is allowed if any of them is. It returns nil if no request with this method exists.
//
// They depend on the method and the path only, not on headers.
func Attributes(nodeName string, r *http.Request) []auth.Attributes {
	a := areaOf(r.URL.Path)
	verb := a.verbs[r.Method]
	if verb == "" {
		return nil
	}
	var any []auth.Attributes
	for _, sub := range a.subresources {
		any = append(any, auth.Attributes{Verb: verb, Version: "v1", Resource: "nodes", Subresource: sub, Name: nodeName})
	}
	return any
}
