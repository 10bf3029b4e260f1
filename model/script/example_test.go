package script_test

import (
	"context"
	"fmt"

	"agentgraph/model"
	"agentgraph/model/script"
)

func ExampleNew() {
	m, err := script.New("answers.yaml", []byte(`
replies:
  - {match: terrible, text: "1"}
default: {text: "3"}
`), script.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	for _, text := range []string{"It was terrible.", "It was a hotel."} {
		resp, err := m.Generate(context.Background(), &model.Request{Messages: []model.Message{{Role: model.User, Content: text}}})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(resp.Text, resp.Finish)
	}
	// Output:
	// 1 stop
	// 3 stop
}
