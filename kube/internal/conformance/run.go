package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// A Target is an API server.
type Target struct {
	URL       string
	Transport http.RoundTripper

	// Strict makes it an error that a response is not the one that the directive @until
	// awaits, so that it is not recorded.
	Strict bool

	// Compact deletes the history, so that older resource versions have expired.
	Compact func() error
}

const (
	callTimeout  = 10 * time.Second // of a request, and of a watch that has too few events
	untilTimeout = 90 * time.Second // of @until; the garbage collector may be slow
	untilPeriod  = 50 * time.Millisecond
)

// Run creates the namespace of the scenario, sends its requests in order and returns the
// normalized responses. A response is nil if its request could not be sent, because an
// earlier response lacks a value that it needs; the error contains the reason.
func (t Target) Run(ctx context.Context, s *Scenario) ([]*Answer, error) {
	_, err := t.send(ctx, &Call{
		Method: http.MethodPost, Path: "/api/v1/namespaces", Body: fmt.Sprintf(`{"metadata":{"name":%q}}`, s.Name),
	}, map[string]any{})
	if err != nil {
		return nil, fmt.Errorf("scenario %s: create namespace: %w", s.Name, err)
	}
	var errs []error
	answers := make([]*Answer, len(s.Calls))
	normal := newNormalizer()
	earlier := map[string]any{} // bodies of responses
	for i, call := range s.Calls {
		res, err := t.repeat(ctx, call, earlier)
		if err != nil {
			errs = append(errs, fmt.Errorf("scenario %s: request %q: %w", s.Name, call.Name, err))
			continue
		}
		earlier[call.Name] = res.body
		answers[i] = normal.answer(call, res)
	}
	return answers, errors.Join(errs...)
}

// repeat sends the request, repeatedly if it has the directive @until.
func (t Target) repeat(ctx context.Context, call *Call, earlier map[string]any) (*response, error) {
	if call.Compacts() {
		if err := t.Compact(); err != nil {
			return nil, err
		}
	}
	until := strings.Join(call.directive("@until"), "")
	for deadline := time.Now().Add(untilTimeout); ; time.Sleep(untilPeriod) {
		res, err := t.send(ctx, call, earlier)
		if err != nil || until == "" || res.satisfies(until) {
			return res, err
		}
		if time.Now().After(deadline) && !t.Strict {
			return res, nil
		}
		if time.Now().After(deadline) {
			return nil, fmt.Errorf("not within %v: %s; the last response has the code %d", untilTimeout, until, res.code)
		}
	}
}

// A response is a response as received.
type response struct {
	code   int
	header http.Header
	text   string
	body   any // of JSON: the value, for a watch the list of events; otherwise the text
}

// satisfies reports whether the response has the code until or, if that is no number, contains
// it. A UID may contain a number.
func (r *response) satisfies(until string) bool {
	if code, err := strconv.Atoi(until); err == nil {
		return r.code == code
	}
	return strings.Contains(r.text, until)
}

func (t Target) send(ctx context.Context, call *Call, earlier map[string]any) (*response, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	path, err := expand(call.Path, earlier)
	if err != nil {
		return nil, err
	}
	body, err := expand(call.Body, earlier)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, call.Method, t.URL+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header = call.header()
	received, err := t.Transport.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer received.Body.Close()
	res := &response{code: received.StatusCode, header: received.Header}
	isJSON := strings.HasPrefix(received.Header.Get("Content-Type"), "application/json")
	query := req.URL.Query()
	if watch := query.Get("watch"); isJSON && res.code == 200 && (watch == "true" || watch == "1") {
		found, err := events(received.Body, strings.Join(call.directive("@events"), ""))
		if err != nil {
			return nil, err
		}
		text, err := json.Marshal(found)
		res.text, res.body = string(text), found
		return res, err
	}
	data, err := io.ReadAll(received.Body)
	if err != nil {
		return nil, err
	}
	res.text, res.body = string(data), string(data)
	if isJSON && len(data) > 0 {
		if err := json.Unmarshal(data, &res.body); err != nil {
			return nil, fmt.Errorf("response %.200q: %w", data, err)
		}
	}
	return res, nil
}

// events reads a watch until its end, a timeout, or the number of events in limit.
func events(body io.Reader, limit string) ([]any, error) {
	want := -1
	if limit != "" {
		var err error
		if want, err = strconv.Atoi(limit); err != nil {
			return nil, fmt.Errorf("@events: %w", err)
		}
	}
	events := []any{}
	decoder := json.NewDecoder(body)
	for len(events) != want {
		var event any
		if err := decoder.Decode(&event); err != nil {
			break // of the stream, or of the context: the events are compared
		}
		events = append(events, event)
	}
	return events, nil
}

var placeholder = regexp.MustCompile(`\$\{([^}|*]+)([|*])([^}]+)\}`)

// expand replaces ${name|path} and ${text*n}.
func expand(text string, earlier map[string]any) (string, error) {
	var errs []error
	out := placeholder.ReplaceAllStringFunc(text, func(match string) string {
		parts := placeholder.FindStringSubmatch(match)
		if parts[2] == "*" {
			n, err := strconv.Atoi(parts[3])
			errs = append(errs, err)
			return strings.Repeat(parts[1], n)
		}
		value, ok := lookup(earlier[parts[1]], strings.Split(parts[3], "."))
		if !ok {
			errs = append(errs, fmt.Errorf("not sent: the response to %q has no %s", parts[1], parts[3]))
		}
		return value
	})
	return out, errors.Join(errs...)
}

// lookup returns the string or number at a path of keys and indexes.
func lookup(value any, path []string) (string, bool) {
	for _, key := range path {
		switch v := value.(type) {
		case map[string]any:
			value = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 || i >= len(v) {
				return "", false
			}
			value = v[i]
		}
	}
	switch v := value.(type) {
	case string:
		return v, true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
