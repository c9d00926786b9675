"""The metric's page: try it on a table of scores."""

import evaluate
from evaluate.utils import launch_gradio_widget


launch_gradio_widget(evaluate.load("qpa.py"))
