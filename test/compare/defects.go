//go:build unix

package compare

import (
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/kubeparts/kubeparts/test/internal/markdown"
)

// defectsText lists the defects of the kubelet that are not copied, in blocks of three lines: the
// numbers of the issues of kubernetes/kubernetes, or none; what the kubelet does; what this
// repository does. No pod of the corpus shows them.
//
//go:embed defects.txt
var defectsText string

// A defect is one block of defects.txt.
type defect struct {
	issues             []int
	kubelet, kubeparts string
}

func parseDefects(text string) ([]defect, error) {
	var all []defect
	number := 1
	for block := range strings.SplitSeq(text, "\n\n") {
		at := number
		number += strings.Count(block, "\n") + 2
		lines := strings.Split(strings.Trim(block, "\n"), "\n")
		if len(lines) != 3 {
			return nil, fmt.Errorf("defects.txt:%d: a block has 3 lines, not %d", at, len(lines))
		}
		var d defect
		var issues string
		for i, field := range []struct {
			name  string
			value *string
		}{{"issue: ", &issues}, {"kubelet: ", &d.kubelet}, {"kubeparts: ", &d.kubeparts}} {
			value, ok := strings.CutPrefix(lines[i], field.name)
			if !ok || value == "" {
				return nil, fmt.Errorf("defects.txt:%d: line must begin with %q", at+i, field.name)
			}
			*field.value = value
		}
		for issue := range strings.SplitSeq(issues, ", ") {
			if issues == "none" {
				break
			}
			n, err := strconv.Atoi(issue)
			if err != nil {
				return nil, fmt.Errorf("defects.txt:%d: %w", at, err)
			}
			d.issues = append(d.issues, n)
		}
		all = append(all, d)
	}
	return all, nil
}

// defectsHeading is the heading of the section of the report that defectsSection returns, the last one.
const defectsHeading = "## Where the kubelet is wrong"

// defectsSection returns the section of the report with the defects.
func defectsSection(defects []defect) string {
	var b strings.Builder
	b.WriteString(defectsHeading + `

Known defects of the kubelet that are not copied, with the issues of kubernetes/kubernetes where there are any. No pod of the comparison shows them; each has a test in this repository. [defects.txt](../test/compare/defects.txt) is the source of this section.

| issue | the kubelet | kubeparts |
|---|---|---|
`)
	for _, d := range defects {
		links := make([]string, len(d.issues))
		for i, n := range d.issues {
			links[i] = fmt.Sprintf("[#%d](https://github.com/kubernetes/kubernetes/issues/%d)", n, n)
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", strings.Join(links, ", "), markdown.Cell(d.kubelet), markdown.Cell(d.kubeparts))
	}
	return b.String()
}
