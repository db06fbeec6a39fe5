package conformance

import (
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"sigs.k8s.io/yaml"
)

// A Scenario is a sequence of requests that build on each other, in a namespace of its name.
type Scenario struct {
	Name  string
	About string
	Calls []*Call
}

// A Call is a request and the recorded response.
type Call struct {
	Name    string
	Method  string
	Path    string
	Headers [][2]string // header lines and directives, in order
	Body    string
	Answer  *Answer // nil if not recorded yet
}

// An Answer is a normalized response.
type Answer struct {
	Code    int
	Headers map[string]string
	Body    any // as from YAML; a string if the response is neither JSON nor empty
}

// comparedHeaders are the headers that an Answer has, in the order of the files.
var comparedHeaders = []string{"Content-Type", "Warning", "Retry-After", "Allow", "Location"}

// directives are the headers that are not sent.
var directives = map[string]bool{"@until": true, "@events": true, "@keep": true, "@managed": true, "@compact": true}

var (
	nameLine   = regexp.MustCompile(`(?m)^=== (.+)\n`)
	answerLine = regexp.MustCompile(`(?m)^--- (\d{3})\n`)
)

// Compacts reports whether the history is deleted before the request.
func (c *Call) Compacts() bool { return len(c.directive("@compact")) > 0 }

// Parse parses the file of the scenario name.
func Parse(name, text string) (*Scenario, error) {
	s := &Scenario{Name: name}
	starts := nameLine.FindAllStringSubmatchIndex(text, -1)
	if len(starts) == 0 {
		return nil, fmt.Errorf("scenario %s: no request", name)
	}
	s.About = strings.TrimSpace(text[:starts[0][0]])
	seen := map[string]bool{}
	for i, at := range starts {
		end := len(text)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		call := &Call{Name: text[at[2]:at[3]]}
		if seen[call.Name] {
			return nil, fmt.Errorf("scenario %s: request %q: the name is not unique", name, call.Name)
		}
		seen[call.Name] = true
		if err := call.parse(text[at[1]:end]); err != nil {
			return nil, fmt.Errorf("scenario %s: request %q: %w", name, call.Name, err)
		}
		s.Calls = append(s.Calls, call)
	}
	return s, nil
}

func (c *Call) parse(text string) error {
	answer := ""
	if at := answerLine.FindStringSubmatchIndex(text); at != nil {
		code, err := strconv.Atoi(text[at[2]:at[3]])
		if err != nil {
			return err
		}
		c.Answer = &Answer{Code: code}
		text, answer = text[:at[0]], text[at[1]:]
	}
	head, body, _ := strings.Cut(strings.TrimRight(text, "\n")+"\n", "\n\n")
	c.Body = strings.TrimSpace(body)
	first, rest, _ := strings.Cut(head, "\n")
	var ok bool
	if c.Method, c.Path, ok = strings.Cut(first, " "); !ok {
		return fmt.Errorf("line %q is not a method and a path", first)
	}
	for line := range strings.Lines(rest) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok || strings.HasPrefix(key, "@") && !directives[key] {
			return fmt.Errorf("line %q is neither a header nor a directive", line)
		}
		c.Headers = append(c.Headers, [2]string{key, value})
	}
	if c.Answer == nil {
		return nil
	}
	return c.Answer.parse(answer)
}

func (a *Answer) parse(text string) error {
	head, body, _ := strings.Cut("\n"+text, "\n\n") // there may be no headers
	a.Headers = map[string]string{}
	for line := range strings.Lines(strings.TrimSpace(head)) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		a.Headers[key] = value
	}
	if err := yaml.Unmarshal([]byte(body), &a.Body); err != nil {
		return fmt.Errorf("parse response: %w", err)
	}
	return nil
}

// directive returns the values of a header or a directive.
func (c *Call) directive(name string) []string {
	var values []string
	for _, h := range c.Headers {
		if h[0] == name {
			values = append(values, h[1])
		}
	}
	return values
}

// header returns the headers that are sent.
func (c *Call) header() http.Header {
	header := http.Header{"Accept": {"application/json"}, "User-Agent": {"corpus"}}
	if c.Body != "" {
		header.Set("Content-Type", "application/json")
	}
	for _, h := range c.Headers {
		if !directives[h[0]] {
			header.Set(h[0], h[1])
		}
	}
	return header
}

// Format returns the file of a scenario.
func Format(s *Scenario) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n", s.About)
	for _, c := range s.Calls {
		fmt.Fprintf(&out, "\n=== %s\n%s %s\n", c.Name, c.Method, c.Path)
		for _, h := range c.Headers {
			fmt.Fprintf(&out, "%s: %s\n", h[0], h[1])
		}
		if c.Body != "" {
			fmt.Fprintf(&out, "\n%s\n", c.Body)
		}
		if c.Answer == nil {
			continue
		}
		fmt.Fprintf(&out, "--- %d\n", c.Answer.Code)
		for _, key := range comparedHeaders {
			if value, ok := c.Answer.Headers[key]; ok {
				fmt.Fprintf(&out, "%s: %s\n", key, value)
			}
		}
		if c.Answer.Body == nil {
			continue
		}
		body, err := yaml.Marshal(c.Answer.Body)
		if err != nil {
			return "", fmt.Errorf("scenario %s: request %q: %w", s.Name, c.Name, err)
		}
		fmt.Fprintf(&out, "\n%s", body)
	}
	return out.String(), nil
}
